#include "comm/secret.hpp"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "config/base/faulty_file.hpp"
#include "config/base/memory_file.hpp"

namespace troupe::comm {
namespace {

using testing::HasSubstr;

const std::string digits(64, 'a');

std::string failure_of(const result<secret>& r) { return r ? "read" : r.failure().message; }

TEST(secret, is_made_once_and_read_by_all) {
  memory_file_system files;
  const result<secret> made = create_secret(files, "/secret");
  ASSERT_TRUE(made) << made.failure().message;
  EXPECT_TRUE(*read_secret(files, "/secret") == *made);
  EXPECT_TRUE(*create_secret(files, "/secret") == *made) << "a second one replaced the first";
  EXPECT_FALSE(random_secret() == *made);
  EXPECT_EQ(read_file(files, "/secret", 100)->size(), 65u);
}

TEST(secret, has_a_file_that_only_its_owner_can_read) {
  std::string place = testing::TempDir() + "troupe-secret-XXXXXX";
  ASSERT_NE(::mkdtemp(place.data()), nullptr);
  const std::string path = place + "/secret";
  ASSERT_TRUE(create_secret(real_file_system(), path));
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  for (const mode_t mode : {0604, 0640, 0620, 0602}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_THAT(failure_of(read_secret(real_file_system(), path)), HasSubstr("chmod 600 " + path));
  }
  ASSERT_EQ(::chmod(path.c_str(), 0400), 0);
  EXPECT_TRUE(read_secret(real_file_system(), path));
  EXPECT_TRUE(remove_all(real_file_system(), place));
}

TEST(secret, is_nothing_but_sixty_four_digits) {
  const auto read = [](const std::string& content) {
    memory_file_system files;
    EXPECT_TRUE(publish_private(files, "/secret", content));
    return failure_of(read_secret(files, "/secret"));
  };
  EXPECT_EQ(read(digits), "read");
  EXPECT_EQ(read(digits + "\n"), "read");
  EXPECT_THAT(read(""), HasSubstr("it has 0 bytes"));
  EXPECT_THAT(read(digits + "\n\n"), HasSubstr("it has 66 bytes"));
  EXPECT_THAT(read(digits + "a"), HasSubstr("something else than digits"));
  EXPECT_THAT(read(digits.substr(1) + "g"), HasSubstr("something else than digits"));
  EXPECT_THAT(read(digits.substr(2) + ":a"), HasSubstr("something else than digits"));
  EXPECT_THAT(read(std::string(64, '\0')), HasSubstr("something else than digits"));
}

TEST(secret, that_is_missing_or_cannot_be_written_says_so) {
  memory_file_system files;
  EXPECT_THAT(failure_of(read_secret(files, "/secret")), HasSubstr("cannot open /secret"));
  faulty_file_system broken(files);
  broken.inject({.operation = file_operation::sync});
  EXPECT_THAT(failure_of(create_secret(broken, "/secret")), HasSubstr("(injected)"));
  EXPECT_FALSE(*files.exists("/secret"));
}

}  // namespace
}  // namespace troupe::comm
