// Whole runs: nothing but the settings that say so may move a bit. What faults do to a run is in
// training_run_faults_test.cpp.
#include "actors/training_run.hpp"

#include <clocale>
#include <csignal>
#include <locale>

#include "tests/actors/tiny_run.hpp"

namespace troupe::actors {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using texts = std::vector<std::string>;

using training_run_test = tiny_run_test;

TEST_F(training_run_test, trains_records_and_saves) {
  const run_outcome o = train("run");
  ASSERT_EQ(o.code, 0) << o.err;
  ASSERT_EQ(o.steps.size(), 6u);
  EXPECT_LT(o.steps.back().loss, o.steps.front().loss - 0.1) << "it did not learn";
  EXPECT_EQ(o.report["exit"], 0);
  EXPECT_EQ(o.report["steps"], 6);
  EXPECT_EQ(o.report["final_loss"].get<double>(), o.steps.back().loss);
  EXPECT_EQ(o.report["steps_redone"], 0);
  EXPECT_THAT(checkpoints("run"), ElementsAre("step-00000006"));
  EXPECT_THAT(o.out, AllOf(HasSubstr("25 windows an epoch"), HasSubstr("finished at step 6 of 6"),
                           HasSubstr(o.weights_hash())));
  EXPECT_THAT(file("run", "events.jsonl"),
              AllOf(HasSubstr("\"generation\""), HasSubstr("\"checkpoint_published\""),
                    HasSubstr("\"finished\"")));
}

// Threads, micro-batches, validation and the log interval: how a run is computed and watched.
TEST_F(training_run_test, has_the_same_bits_however_it_is_computed_and_watched) {
  const texts gpt2 = {"model.model_type=gpt2", "model.num_key_value_heads=0", "model.dropout=0.1"};
  const std::vector<std::pair<std::string, texts>> models = {
      {"llama", {}},
      {"tied", {"model.tie_word_embeddings=true", "model.dropout=0.1"}},
      {"gpt2", gpt2}};
  std::set<std::string> all_hashes;
  int number = 0;
  for (const auto& [name, model] : models) {
    const auto run = [&](const texts& more) {
      texts all = model;
      all.insert(all.end(), more.begin(), more.end());
      all.emplace_back("checkpoint.enable=false");
      return train(fmt::format("{}-{}", name, number++), all);
    };
    const run_outcome plain = run({});
    ASSERT_EQ(plain.code, 0) << plain.err;
    all_hashes.insert(plain.weights_hash());
    for (const int threads : {1, 2, 3}) {
      for (const int micro : {1, 2, 4, 8}) {
        for (const bool watched : {false, true}) {
          SCOPED_TRACE(fmt::format("{}: {} threads, micro-batch {}, {}", name, threads, micro,
                                   watched ? "validation and a line each step" : "unwatched"));
          const run_outcome o = run({fmt::format("compute.threads={}", threads),
                                     fmt::format("training.micro_batch_size={}", micro),
                                     fmt::format("validation.enable={}", watched),
                                     fmt::format("metrics.log_freq={}", watched ? 1 : 50)});
          ASSERT_EQ(o.code, 0) << o.err;
          expect_same_bits(o, plain);
          EXPECT_EQ(o.report["val_loss"].is_number(), watched);
        }
      }
    }
  }
  EXPECT_EQ(all_hashes.size(), models.size()) << "the models do not differ";
}

TEST_F(training_run_test, has_the_same_bits_whatever_the_order_in_the_data_s_folder) {
  const run_outcome before = train("before");
  for (const char* name : {"text-a.txt", "text-b.txt", "text-c.txt"}) {
    const std::string text = model::data::read_all(place / name);
    std::filesystem::remove(place / name);
    (void)place.write(name, text);
  }
  const run_outcome after = train("after");
  expect_same_bits(before, after);
  std::filesystem::rename(place / "text-a.txt", place / "text-x.txt");
  EXPECT_NE(train("renamed").weights_hash(), before.weights_hash()) << "the names should count";
}

class comma final : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST_F(training_run_test, writes_the_same_files_in_a_locale_with_decimal_commas) {
  const texts watched = {"validation.enable=true", "metrics.log_freq=1"};
  const run_outcome plain = train("run", watched);
  const std::string steps = file("run", "steps.jsonl");
  ASSERT_FALSE(steps.empty());

  const std::locale before = std::locale::global(std::locale(std::locale(), new comma));
  const char* german = std::setlocale(LC_ALL, "de_DE.UTF-8");  // where it is installed
  const run_outcome local = train("local", watched);
  std::locale::global(before);
  if (german != nullptr) std::setlocale(LC_ALL, "C");

  ASSERT_EQ(local.code, 0) << local.err;
  expect_same_bits(plain, local);
  EXPECT_EQ(file("local", "steps.jsonl"), steps);
  const auto comparable = [&](const std::string& run) {
    std::string text = file(run, "checkpoints/step-00000006/manifest.json");
    text.resize(text.find("\"check\""));  // a hash of the rest, the run's random name included
    const auto id = nlohmann::json::parse(file(run, "run.json"))["run"].get<std::string>();
    text.replace(text.find(id), id.size(), "");
    return text;
  };
  EXPECT_EQ(comparable("local"), comparable("run"));
  const auto lines = [](const std::string& out) { return out.substr(out.find("step 1/6")); };
  EXPECT_EQ(lines(local.out).substr(0, 300), lines(plain.out).substr(0, 300));
}

TEST_F(training_run_test, stopped_before_any_step_and_resumed_has_the_bits_of_an_undisturbed_run) {
  for (const texts& model : {texts{}, texts{"model.model_type=gpt2", "model.num_key_value_heads=0",
                                            "model.dropout=0.1"}}) {
    const std::string family = model.empty() ? "llama" : "gpt2";
    const run_outcome straight = train(family + "-straight", model);
    for (std::size_t k = 0; k < 6; ++k) {
      SCOPED_TRACE(fmt::format("{} stopped after {} steps", family, k));
      const std::string name = fmt::format("{}-{}", family, k);
      const run_outcome stopped = train(name, model, {.stop = stop_before(k)});
      EXPECT_EQ(stopped.code, 75) << stopped.err;
      EXPECT_EQ(stopped.steps.size(), k);
      EXPECT_EQ(stopped.report["exit"], 75);
      EXPECT_THAT(stopped.err, AllOf(HasSubstr("Terminated"), HasSubstr("75")));
      const run_outcome resumed = train(name, model);
      ASSERT_EQ(resumed.code, 0) << resumed.err;
      expect_same_bits(resumed, straight);
      EXPECT_EQ(resumed.report["steps_redone"], 0);
      if (k > 0) {
        EXPECT_THAT(resumed.out, testing::ContainsRegex(fmt::format("resumed from +step {}", k)));
      }
    }
  }
}

TEST_F(training_run_test, stopped_after_every_single_step_has_the_bits_of_an_undisturbed_run) {
  const run_outcome straight = train("straight");
  run_outcome o;
  int starts = 0;
  do {
    o = train("patient", {}, {.stop = stop_before(1)});
    ASSERT_TRUE(o.code == 75 || o.code == 0) << o.err;
  } while (o.code == 75 && ++starts < 10);
  EXPECT_EQ(starts, 5);
  expect_same_bits(o, straight);
}

TEST_F(training_run_test, refuses_to_go_on_with_other_settings_and_names_them) {
  ASSERT_EQ(train("run", {}, {.stop = stop_before(2)}).code, 75);
  const std::string steps = file("run", "steps.jsonl");
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"training.seed", "99"},           {"optimizer.lr", "0.02"},
      {"training.seq_len", "4"},         {"training.global_batch_size", "4"},
      {"lr_scheduler.total_steps", "7"}, {"parallelism.virtual_ranks", "4"},
      {"model.dropout", "0.1"}};
  for (const auto& [key, value] : changes) {
    const run_outcome o = train("run", {key + "=" + value, "lr_scheduler.warmup_steps=2"});
    EXPECT_EQ(o.code, 78) << key;
    EXPECT_THAT(o.err, AllOf(HasSubstr(key), HasSubstr("before"), HasSubstr("step 2")));
  }
  EXPECT_EQ(file("run", "steps.jsonl"), steps);
  EXPECT_THAT(checkpoints("run"), ElementsAre("step-00000002"));
}

TEST_F(training_run_test, refuses_to_go_on_with_other_data) {
  ASSERT_EQ(train("run", {}, {.stop = stop_before(2)}).code, 75);
  std::string text = model::data::read_all(place / "text-b.txt");
  text[20] = text[20] == 'a' ? 'b' : 'a';
  (void)place.write("text-b.txt", text);
  const run_outcome o = train("run");
  EXPECT_EQ(o.code, 78);
  EXPECT_THAT(o.err, AllOf(HasSubstr("the training data changed"), HasSubstr("step 2")));
}

TEST_F(training_run_test, that_is_finished_says_so_and_changes_nothing) {
  const run_outcome first = train("run");
  const std::string steps = file("run", "steps.jsonl");
  const run_outcome o = train("run");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, AllOf(HasSubstr("is finished"), HasSubstr(first.weights_hash())));
  EXPECT_EQ(file("run", "steps.jsonl"), steps);
  EXPECT_EQ(o.report, first.report);
}

TEST_F(training_run_test, told_never_to_resume_refuses_a_directory_with_steps) {
  const checkpoint::wanted never{checkpoint::wanted::kind::none, 0};
  ASSERT_EQ(train("run", {}, {.resume = never, .stop = stop_before(2)}).code, 75);
  const run_outcome o = train("run", {}, {.resume = never});
  EXPECT_EQ(o.code, 73);
  EXPECT_THAT(o.err, AllOf(HasSubstr("2 steps"), HasSubstr("--run-dir")));
}

TEST_F(training_run_test, goes_on_from_the_step_it_is_told) {
  const run_outcome straight = train("straight");
  ASSERT_EQ(train("run", {}, {.stop = stop_before(2)}).code, 75);
  ASSERT_EQ(train("run", {}, {.stop = stop_before(2)}).code, 75);
  const run_outcome o = train("run", {}, {.resume = {checkpoint::wanted::kind::step, 2}});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.report["steps_redone"], 2);
  expect_same_bits(o, straight);
  const run_outcome none = train("run", {}, {.resume = {checkpoint::wanted::kind::step, 3}});
  EXPECT_EQ(none.code, 73);
  EXPECT_THAT(none.err, HasSubstr("whole ones: 2 4 6"));
}

TEST_F(training_run_test, may_grow_where_the_curve_of_the_rate_is_fixed) {
  const run_outcome straight = train("straight");
  ASSERT_EQ(train("run", {"training.steps=3"}).code, 0);
  const run_outcome grown = train("run");
  ASSERT_EQ(grown.code, 0) << grown.err;
  expect_same_bits(grown, straight);
}

TEST_F(training_run_test, ends_when_too_many_steps_in_a_row_are_skipped) {
  const texts absurd = {"optimizer.lr=1e30", "lr_scheduler.warmup_steps=0",
                        "training.max_skipped_steps=2"};
  ASSERT_EQ(train("run", absurd, {.stop = stop_before(1)}).code, 75);
  const std::string manifest = file("run", "checkpoints/step-00000001/manifest.json");
  const run_outcome o = train("run", absurd);
  EXPECT_EQ(o.code, 65);
  EXPECT_THAT(o.err, AllOf(HasSubstr("3 steps in a row were skipped"), HasSubstr("step 4"),
                           HasSubstr("training.max_skipped_steps"), HasSubstr("optimizer.lr")));
  EXPECT_THAT(checkpoints("run"), ElementsAre("step-00000001"));
  EXPECT_EQ(file("run", "checkpoints/step-00000001/manifest.json"), manifest);
  ASSERT_EQ(o.steps.size(), 4u);
  EXPECT_TRUE(o.steps[1].skipped && o.steps[2].skipped && o.steps[3].skipped);
  EXPECT_EQ(o.report["skipped_steps"], 3);
  EXPECT_EQ(o.report["exit"], 65);
}

// Documents of very different length, and sequences in which nothing counts.
TEST_F(training_run_test, adds_up_micro_batches_of_uneven_token_counts_exactly) {
  const std::vector<std::uint16_t> nothing(8 * 4 + 1, 256);
  (void)place.write("eod.bin", model::data::llmc16(nothing));
  (void)place.write("short.jsonl",
                    "{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"text\":\"cd\"}\n"
                    "{\"text\":\"a longer one, of many windows of text\"}\n");
  const auto run = [&](const std::string& name, int ranks, int micro) {
    run_outcome o = train(
        name, {"data.sources[0].path=" + (place / "[es]*.[bj]*"), "data.eod_mask_loss=true",
               "training.global_batch_size=12", fmt::format("parallelism.virtual_ranks={}", ranks),
               fmt::format("training.micro_batch_size={}", micro), "checkpoint.enable=false"});
    EXPECT_EQ(o.code, 0) << o.err;
    return o;
  };
  const run_outcome whole = run("whole", 1, 12);
  ASSERT_EQ(whole.steps.size(), 6u);
  EXPECT_LT(whole.steps[0].tokens, 12u * 8u) << "every target counts: nothing is tested";
  for (const int micro : {1, 2, 3}) {
    SCOPED_TRACE(micro);
    expect_same_bits(run(fmt::format("micro-{}", micro), 1, micro), whole);
  }
  for (const int ranks : {3, 4, 12}) {
    SCOPED_TRACE(ranks);
    const run_outcome cut = run(fmt::format("ranks-{}", ranks), ranks, 12 / ranks);
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(cut.steps[i].tokens, whole.steps[i].tokens);
      EXPECT_NEAR(cut.steps[i].loss, whole.steps[i].loss, 1e-5 * whole.steps[i].loss);
      EXPECT_NEAR(cut.steps[i].grad_norm, whole.steps[i].grad_norm,
                  1e-4 * whole.steps[i].grad_norm);
    }
    EXPECT_NEAR(cut.steps[0].loss, whole.steps[0].loss, 1e-6 * whole.steps[0].loss);
    EXPECT_NEAR(cut.steps[0].grad_norm, whole.steps[0].grad_norm, 1e-6 * whole.steps[0].grad_norm);
  }
}

TEST_F(training_run_test, on_one_document_of_end_of_text_skips_its_steps_without_a_nan) {
  const std::vector<std::uint16_t> nothing(65, 256);
  (void)place.write("eod.bin", model::data::llmc16(nothing));
  const texts data = {"data.sources[0].path=" + (place / "eod.bin"), "data.eod_mask_loss=true",
                      "training.max_skipped_steps=3"};
  texts short_run = data;
  short_run.emplace_back("training.steps=3");
  const run_outcome o = train("short", short_run);
  EXPECT_EQ(o.code, 0) << o.err;
  ASSERT_EQ(o.steps.size(), 3u);
  for (const step_record& s : o.steps) {
    EXPECT_TRUE(s.skipped);
    EXPECT_EQ(s.tokens, 0u);
    EXPECT_EQ(s.loss, 0.0);
    EXPECT_EQ(s.grad_norm, 0.0);
  }
  EXPECT_THAT(o.err, HasSubstr("no target token counts"));
  const run_outcome ended = train("long", data);
  EXPECT_EQ(ended.code, 65);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("4 steps in a row"), HasSubstr("no target token counts")));
}

TEST_F(training_run_test, repeats_data_of_one_window_or_of_fewer_than_a_batch) {
  for (const std::size_t windows : {1, 3}) {
    SCOPED_TRACE(windows);
    (void)place.write("few.txt", words(9, windows * 8));  // its end of text is the last target
    const texts data = {"data.sources[0].path=" + (place / "few.txt")};
    const std::string name = fmt::format("windows-{}", windows);
    const run_outcome o = train(name, data);
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.steps.size(), 6u);
    EXPECT_EQ(o.steps[0].tokens, 64u);
    EXPECT_LT(o.steps[5].loss, o.steps[0].loss);
    EXPECT_THAT(o.out, HasSubstr(fmt::format("{} windows an epoch", windows)));
    ASSERT_EQ(train(name + "-again", data, {.stop = stop_before(2)}).code, 75);
    expect_same_bits(train(name + "-again", data), o);
  }
}

TEST_F(training_run_test, with_too_little_data_ends_at_once_with_what_it_found_and_needs) {
  (void)place.write("few.txt", words(9, 7));
  (void)place.write("none.txt", "");
  const auto refusal = [&](const texts& overrides) {
    const run_outcome o = train("run", overrides);
    EXPECT_EQ(o.code, 65) << o.err;
    EXPECT_TRUE(o.steps.empty());
    return o.err;
  };
  EXPECT_THAT(refusal({"data.sources[0].path=" + (place / "few.txt")}),
              AllOf(HasSubstr("8"), HasSubstr("9")));
  EXPECT_THAT(refusal({"data.sources[0].path=" + (place / "none.txt")}), HasSubstr("none.txt"));
  EXPECT_THAT(refusal({"data.sources[0].path=" + (place / "nowhere.txt")}),
              HasSubstr("nowhere.txt"));
  EXPECT_THAT(refusal({"validation.enable=true", "validation.path=" + (place / "few.txt")}),
              AllOf(HasSubstr("8"), HasSubstr("9")));
}

TEST_F(training_run_test, shows_whole_lines_and_one_line_of_progress_a_log_interval) {
  const run_outcome o = train("run", {"metrics.log_freq=3"});
  for (const std::string& text : {o.out, o.err}) {
    EXPECT_EQ(text.find_first_of("\r\033"), std::string::npos);
    EXPECT_TRUE(text.empty() || text.ends_with('\n'));
  }
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = o.out.find("grad_norm", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(lines, 3u) << o.out;  // the first step, step 3 and step 6
}

}  // namespace
}  // namespace troupe::actors
