#include "actors/chaos/order.hpp"

#include <gmock/gmock.h>

namespace troupe::actors::chaos {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

worker_order order(std::uint64_t id, const std::string& point, std::uint64_t step) {
  worker_order o;
  o.id = id;
  o.when = order_moment{*parse_point(point), step, step};
  return o;
}

TEST(order_test, comes_back_as_it_was_written) {
  worker_order o = order(7, "commit-sent:2", 17);
  o.kind = fault_kind::delay;
  o.lasts = 1500ms;
  o.towards = {member_id(0), member_id(3)};
  o.seed = UINT64_MAX;
  o.params = {{"by", duration(20ms)},
              {"share", 0.1},
              {"messages", std::int64_t{5}},
              {"plane", std::string("control")}};
  const auto back = parse_order(to_line(o), "f");
  ASSERT_TRUE(back) << back.failure().message;
  EXPECT_EQ(to_line(*back), to_line(o));
  EXPECT_EQ(std::get<duration>(back->params.at("by")), 20ms);
  EXPECT_EQ(back->towards, o.towards);
  EXPECT_EQ(back->when->point, o.when->point);
}

TEST(order_test, an_end_names_its_order_alone) {
  worker_order o;
  o.id = 9;
  o.ends = true;
  const auto back = parse_order(to_line(o), "f");
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->ends);
  EXPECT_EQ(back->id, 9U);
}

TEST(order_test, a_proof_comes_back_as_it_was_written) {
  const proof p{3, proof::kind::over, 12, "voted", 123456789ns, "said \"so\""};
  const auto back = parse_proof(to_line(p), "f");
  ASSERT_TRUE(back) << back.failure().message;
  EXPECT_EQ(to_line(*back), to_line(p));
  EXPECT_EQ(back->what, proof::kind::over);
}

TEST(order_test, what_nobody_knows_is_refused_by_name) {
  EXPECT_THAT(parse_order(R"({"id":1,"kind":"burn","towards":[],"seed":1,"params":{}})", "f")
                  .failure()
                  .message,
              HasSubstr("burn"));
  EXPECT_THAT(parse_order(R"({"id":1,"kind":"kill","towards":[],"seed":1,"params":{},"x":1})", "f")
                  .failure()
                  .message,
              HasSubstr("x"));
  EXPECT_THAT(
      parse_proof(R"({"id":1,"what":"dreamt","step":0,"point":"","moment_ns":0,"words":""})", "f")
          .failure()
          .message,
      HasSubstr("dreamt"));
}

TEST(order_book_test, an_order_without_a_point_is_due_at_once) {
  order_book book;
  worker_order o;
  o.id = 1;
  EXPECT_TRUE(book.add(o));
  EXPECT_FALSE(book.waits());
}

TEST(order_book_test, an_order_waits_for_its_point_and_step_and_happens_once) {
  order_book book;
  EXPECT_FALSE(book.add(order(1, "voted", 5)));
  EXPECT_THAT(book.reached("voted", 4, 0), IsEmpty());
  EXPECT_THAT(book.reached("applied", 5, 0), IsEmpty());
  EXPECT_TRUE(book.waits());
  EXPECT_THAT(book.reached("voted", 5, 0), SizeIs(1));
  EXPECT_THAT(book.reached("voted", 5, 0), IsEmpty());
  EXPECT_FALSE(book.waits());
}

TEST(order_book_test, a_counted_point_is_the_kth_and_no_other) {
  order_book book;
  book.add(order(1, "commit-sent:2", 5));
  EXPECT_THAT(book.reached("commit-sent", 5, 1), IsEmpty());
  EXPECT_THAT(book.reached("commit-sent", 5, 2), SizeIs(1));
}

TEST(order_book_test, several_orders_at_one_point_come_in_their_order) {
  order_book book;
  book.add(order(4, "voted", 5));
  book.add(order(2, "voted", 5));
  std::vector<std::uint64_t> ids;
  for (const worker_order& o : book.reached("voted", 5, 0)) ids.push_back(o.id);
  EXPECT_THAT(ids, ElementsAre(4, 2));
}

TEST(order_book_test, an_order_that_was_taken_back_never_happens) {
  order_book book;
  book.add(order(1, "voted", 5));
  worker_order end;
  end.id = 1;
  end.ends = true;
  EXPECT_TRUE(book.add(end)) << "it may also last";
  EXPECT_THAT(book.reached("voted", 5, 0), IsEmpty());
  book.add(order(2, "voted", 5));
  worker_order withdrawn;
  withdrawn.id = 2;
  withdrawn.withdrawn = true;
  EXPECT_FALSE(book.add(withdrawn));
  EXPECT_THAT(book.reached("voted", 5, 0), IsEmpty());
}

}  // namespace
}  // namespace troupe::actors::chaos
