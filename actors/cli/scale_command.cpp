// `troupe scale` and `troupe drain`: as many workers as a person wants, and one that leaves. The
// launcher of the run decides and carries out; it is asked directly where it is on this machine,
// else through the run's port, whose process passes the question on to a launcher on its machine.
// "yes" means that it is under way.
#include <fmt/format.h>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "actors/cli/run_place.hpp"
#include "actors/command_box.hpp"
#include "actors/world_order.hpp"

namespace troupe::actors::cli {
namespace {

constexpr std::chrono::seconds launcher_patience{10};

error refusal(const std::string& run, const world_wish& wish, const error& why) {
  return {why.code,
          fmt::format("{} was asked to {} and refused: {}", run, to_text(wish), why.message)};
}

int say_taken(const std::string& run, const world_wish& wish, const std::string& words,
              std::ostream& out) {
  if (std::holds_alternative<drain_wish>(wish)) {
    out << fmt::format("draining {}: {}\n", run, words);
  } else if (words.starts_with("at ")) {
    out << fmt::format("{} is {}\n", run, words);
  } else {
    out << fmt::format("scaling {} {}\n", run, words);
  }
  return 0;
}

result<std::string> secret_in(const std::string& file) {
  result<std::string> secret = read_file(real_file_system(), file, 4096);
  if (!secret) return secret;
  secret->erase(secret->find_last_not_of("\r\n") + 1);
  return secret;
}

exit_code code_of(int http) {
  if (http == 400) return exit_code::usage;
  return http == 503 ? exit_code::too_few : exit_code::cannot_use;
}

int ask_at_port(const comm::address& at, const std::string& run, const world_wish& wish,
                const std::string& secret_file, std::ostream& out, std::ostream& err) {
  result<std::string> secret = secret_in(secret_file);
  if (!secret) return fail(secret.failure(), err);
  std::string path = "/api/" + to_text(wish);
  path[path.find(' ')] = '/';
  result<http_answer> answer = http_post(at, path, *secret);
  if (!answer) return fail(answer.failure(), err);
  std::string words = answer->body;
  words.erase(words.find_last_not_of("\r\n") + 1);
  if (answer->code != 202) return fail(refusal(run, wish, {code_of(answer->code), words}), err);
  return say_taken(run, wish, words, out);
}

int ask(const world_wish& wish, const std::string& text, std::string secret_file, std::ostream& out,
        std::ostream& err) {
  result<run_place> place = find_run(text);
  if (!place) return fail(place.failure(), err);
  std::string run = text;
  if (place->directory) {
    run = place->directory->path();
    auto answer = ask_launcher(place->directory->run_id(), to_text(wish), launcher_patience);
    if (!answer) return fail(answer.failure(), err);
    if (*answer) {
      const command_answer& said = **answer;
      if (said.code == exit_code::ok) return say_taken(run, wish, said.words, out);
      return fail(refusal(run, wish, {said.code, said.words}), err);
    }
    if (secret_file.empty()) secret_file = place->directory->file("secret");
  }
  if (place->answers) {
    if (!secret_file.empty()) return ask_at_port(*place->answers, run, wish, secret_file, out, err);
    return fail({exit_code::usage, "a run at HOST:PORT obeys its secret: --secret FILE"}, err);
  }
  return fail({exit_code::cannot_use,
               fmt::format("no launcher of {} is on this machine, and nobody answers at its port; "
                           "`troupe train` starts one, and a worker that a person has started "
                           "leaves after TERM",
                           run)},
              err);
}

}  // namespace

int scale_command(arguments args, std::ostream& out, std::ostream& err) {
  command_line line("scale",
                    "Makes the world of a run larger or smaller while it trains; the results stay "
                    "the same, bit for bit.",
                    "  troupe scale 4\n"
                    "  troupe scale 2 outputs/quickstart\n"
                    "  troupe scale 8 gpu03:29650 --secret outputs/a/secret\n");
  std::string text, secret_file;
  std::int64_t workers = 0;
  line.app()
      .add_option("N", workers, "workers that the run's launcher is to have")
      ->required()
      ->check(CLI::Range(0, 1 << 20));
  line.app().add_option("RUN", text, "run directory or HOST:PORT; the newest below outputs/");
  line.app().add_option("--secret", secret_file, "file with the run's secret (RUN/secret)");
  if (const auto code = line.parse(args, out, err)) return *code;
  return ask(scale_wish{static_cast<std::uint64_t>(workers)}, text, secret_file, out, err);
}

int drain_command(arguments args, std::ostream& out, std::ostream& err) {
  command_line line("drain",
                    "Lets one worker hand over what it holds and leave; it ends with 0, and its "
                    "slot stays empty until `troupe scale`.",
                    "  troupe drain worker-3\n"
                    "  troupe drain worker-3 outputs/quickstart\n");
  std::string text, secret_file, member;
  line.app().add_option("MEMBER", member, "its name, as `troupe status` shows it")->required();
  line.app().add_option("RUN", text, "run directory or HOST:PORT; the newest below outputs/");
  line.app().add_option("--secret", secret_file, "file with the run's secret (RUN/secret)");
  if (const auto code = line.parse(args, out, err)) return *code;
  return ask(drain_wish{member}, text, secret_file, out, err);
}

}  // namespace troupe::actors::cli
