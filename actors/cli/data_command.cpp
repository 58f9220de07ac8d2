// `troupe data pack`: text to token files. `troupe data info`: what data files hold.
//
// Files are taken in the order of their names' bytes, however they were given: a shell expands
// patterns in the order of its locale, and the order decides what a run trains on.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "actors/cli/command_line.hpp"
#include "actors/cli/commands.hpp"
#include "config/base/file.hpp"
#include "config/base/json.hpp"
#include "config/base/nearest.hpp"
#include "model/data/inspect.hpp"
#include "model/data/pack.hpp"

namespace troupe::actors::cli {
namespace {

namespace data = model::data;

constexpr const char* overview =
    "usage: troupe data pack IN... --out FILE    text or JSON lines to llm.c token files\n"
    "       troupe data info FILE...             what text, JSON lines or token files hold\n"
    "'troupe data pack --help' and 'troupe data info --help' list the options.\n";

// The options that both commands have: which files, and how to read them.
struct input_options {
  std::vector<std::string> paths;
  std::string format = "auto", text_key = "text";
  bool no_eos = false;

  void add_to(CLI::App& app, const std::string& name) {
    app.add_option(name, paths, "files or patterns in quotes; taken in the order of their names")
        ->required();
    app.add_option("--format", format, "how to read them; auto goes by content and ending")
        ->check(CLI::IsMember({"auto", "text", "jsonl", "llmc"}));
    app.add_option("--text-key", text_key, "JSON lines: the field that holds the text");
    app.add_flag("--no-eos", no_eos, "do not end documents with the end-of-text token 256");
  }

  std::vector<data::source> sources() const {
    const std::map<std::string, data::data_format> formats = {
        {"auto", data::data_format::automatic},
        {"text", data::data_format::text},
        {"jsonl", data::data_format::jsonl},
        {"llmc", data::data_format::llmc}};
    std::vector<std::string> sorted = paths;
    std::ranges::sort(sorted);
    std::vector<data::source> all;
    for (const std::string& path : sorted) all.push_back({path, formats.at(format), text_key});
    return all;
  }
};

void print_pack(const data::pack_report& report, std::ostream& out) {
  for (const data::written_shard& shard : report.shards)
    out << fmt::format("{}  {} tokens\n", shard.path, shard.tokens);
  out << fmt::format("{}\n{} documents of {} files, {} tokens, vocabulary {}, hash {}\n",
                     report.side_file, report.documents, report.files, report.tokens,
                     report.vocabulary, report.hash.hex());
}

void print_pack_json(const data::pack_report& report, std::ostream& out) {
  json_page page;
  page.u64("files", report.files).u64("documents", report.documents);
  page.u64("tokens", report.tokens).u64("vocabulary_size", report.vocabulary);
  page.text("hash", report.hash.hex()).text("side_file", report.side_file);
  page.begin_array("shards");
  for (const data::written_shard& shard : report.shards)
    page.begin_element()
        .text("path", shard.path)
        .u64("tokens", shard.tokens)
        .text("hash", shard.hash.hex())
        .end();
  page.end().texts("notes", report.notes);
  out << page.finish();
}

int pack(arguments args, std::ostream& out, std::ostream& err) {
  command_line line("data pack", "Text and JSON lines to llm.c token files and a JSON side file.",
                    "  troupe data pack 'corpus/*.txt' --out corpus.bin\n"
                    "  troupe data pack crawl.jsonl --text-key content --out crawl.bin\n");
  input_options input;
  data::pack_options options;
  bool json = false;
  input.add_to(line.app(), "IN");
  line.app().add_option("--out", options.out, "token file to write")->required();
  line.app()
      .add_option("--shard-tokens", options.shard_tokens,
                  "tokens a file; more become FILE_000000.bin, FILE_000001.bin, ...")
      ->check(CLI::Range(std::uint64_t{1}, data::llmc_max_tokens));
  line.app().add_flag("--force", options.replace_existing, "replace files of that name");
  line.app().add_flag("--json", json, "print one JSON object");
  if (const auto code = line.parse(args, out, err)) return *code;

  options.sources = input.sources();
  options.add_eos = !input.no_eos;
  const auto report = data::pack(options, real_file_system());
  if (!report) return fail(report.failure(), err);
  for (const std::string& note : report->notes) err << "note: " << note << "\n";
  json ? print_pack_json(*report, out) : print_pack(*report, out);
  return 0;
}

void print_info(const data::data_report& report, std::ostream& out) {
  std::size_t width = 4;
  for (const data::file_report& file : report.files)
    width = std::max(width, file.facts.path.size());
  out << fmt::format("{:<{}}  {:<6}  {:>14}  {:>15}  {:>10}  {:>10}  hash of the tokens\n", "file",
                     width, "format", "tokens", "bytes", "documents", "largest id");
  for (const data::file_report& file : report.files) {
    std::string documents = "-";
    if (file.facts.documents) documents = fmt::format("{}", *file.facts.documents);
    out << fmt::format("{:<{}}  {:<6}  {:>14}  {:>15}  {:>10}  {:>10}  {}\n", file.facts.path,
                       width, name_of(file.facts.format), file.facts.tokens, file.facts.bytes,
                       documents, file.largest_id, file.hash.hex());
  }
  out << fmt::format("{} files, {} tokens, hash {}\n", report.files.size(), report.tokens,
                     report.hash.hex());
  if (!report.windows) return;
  const data::window_report& w = *report.windows;
  out << fmt::format("{} windows of {} tokens, {} tokens unused, digest {}\n", w.windows, w.seq_len,
                     w.unused_tokens, w.digest ? w.digest->hex() : "none");
}

void print_info_json(const data::data_report& report, std::ostream& out) {
  json_page page;
  page.begin_array("files");
  for (const data::file_report& file : report.files) {
    page.begin_element().text("path", file.facts.path).text("format", name_of(file.facts.format));
    page.u64("tokens", file.facts.tokens).u64("bytes", file.facts.bytes);
    if (file.facts.token_bytes != 0) page.u64("token_bytes", file.facts.token_bytes);
    if (file.facts.documents) page.u64("documents", *file.facts.documents);
    page.u64("largest_id", file.largest_id).text("hash", file.hash.hex());
    if (file.side) {
      page.begin_object("side_file").text("path", data::side_file_path(file.facts.path));
      page.text("tokenizer", file.side->tokenizer);
      page.u64("vocabulary_size", file.side->vocabulary_size);
      if (file.side->eod_token) page.u64("eod_token", *file.side->eod_token);
      page.u64("documents", file.side->documents).end();
    }
    page.end();
  }
  page.end().u64("tokens", report.tokens).text("hash", report.hash.hex());
  if (report.windows) {
    page.u64("seq_len", report.windows->seq_len).u64("windows", report.windows->windows);
    page.u64("unused_tokens", report.windows->unused_tokens);
    if (report.windows->digest) page.text("digest", report.windows->digest->hex());
  }
  page.texts("notes", report.notes);
  out << page.finish();
}

int info(arguments args, std::ostream& out, std::ostream& err) {
  command_line line("data info", "What text, JSON lines and token files hold; reads all of it.",
                    "  troupe data info corpus.bin --seq-len 1024\n"
                    "  troupe data info 'fineweb_train_*.bin' --vocab-size 50257 --json\n");
  input_options input;
  data::inspect_options options;
  bool json = false;
  input.add_to(line.app(), "FILE");
  line.app()
      .add_option("--seq-len", options.seq_len,
                  "window length in tokens; adds windows, unused tokens and the run's data digest")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30));
  line.app().add_option("--vocab-size", options.vocabulary,
                        "check that every id is below it; 0 takes any");
  line.app().add_flag("--json", json, "print one JSON object");
  if (const auto code = line.parse(args, out, err)) return *code;

  options.sources = input.sources();
  options.add_eos = !input.no_eos;
  const auto report = data::inspect(options, real_file_system());
  if (!report) return fail(report.failure(), err);
  for (const std::string& note : report->notes) err << "note: " << note << "\n";
  json ? print_info_json(*report, out) : print_info(*report, out);
  return 0;
}

}  // namespace

int data_command(arguments args, std::ostream& out, std::ostream& err) {
  if (!args.empty() && args[0] == "pack") return pack(args.subspan(1), out, err);
  if (!args.empty() && args[0] == "info") return info(args.subspan(1), out, err);
  if (!args.empty() && (args[0] == "-h" || args[0] == "--help")) {
    out << overview;
    return 0;
  }
  if (args.empty()) {
    err << overview;
  } else {
    const std::vector<std::string> known = {"pack", "info"};
    err << fmt::format("troupe: unknown command \"data {}\"", args[0]);
    if (const auto near = nearest(args[0], known)) err << "; did you mean data " << *near << "?";
    err << " (see troupe data --help)\n";
  }
  return static_cast<int>(exit_code::usage);
}

}  // namespace troupe::actors::cli
