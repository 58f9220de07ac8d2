#include "model/checkpoint/manifest.hpp"

#include <fmt/format.h>

#include <charconv>

#include "config/base/json.hpp"
#include "model/checkpoint/folder.hpp"

namespace troupe::checkpoint {
namespace {

constexpr std::uint64_t longest_manifest = std::uint64_t{1} << 28;
constexpr std::string_view check_prefix = ",\n  \"check\": \"";
constexpr std::string_view check_suffix = "\"\n}\n";
constexpr std::size_t hash_digits = 32;

void write_model(json_writer& out, const model::description& d) {
  out.begin_object("model")
      .text("model_type", model::name_of(d.family))
      .u64("vocab_size", d.vocabulary)
      .u64("hidden_size", d.width)
      .u64("intermediate_size", d.inner)
      .u64("num_hidden_layers", d.layers)
      .u64("num_attention_heads", d.heads)
      .u64("num_key_value_heads", d.kv_heads)
      .u64("head_dim", d.head_dim)
      .u64("max_position_embeddings", d.positions)
      .number("norm_eps", d.norm_epsilon)
      .number("rope_theta", d.rope_theta);
  if (d.rope_scaling) {
    out.begin_object("rope_scaling")
        .number("factor", d.rope_scaling->factor)
        .number("low_freq_factor", d.rope_scaling->low_freq_factor)
        .number("high_freq_factor", d.rope_scaling->high_freq_factor)
        .u64("original_max_position_embeddings", d.rope_scaling->original_positions)
        .end();
  } else {
    out.null("rope_scaling");
  }
  out.boolean("tie_word_embeddings", d.tied)
      .boolean("bias", d.bias)
      .number("initializer_range", d.initializer_range)
      .number("dropout", d.dropout)
      .end();
}

model::description read_model(json_fields& in) {
  model::description d;
  const std::string family = in.text("model_type");
  if (family == "gpt2") {
    d.family = model::family::gpt2;
  } else if (family == "llama") {
    d.family = model::family::llama;
  } else {
    in.fail("model_type", "expected \"gpt2\" or \"llama\"");
  }
  d.vocabulary = in.u64("vocab_size");
  d.width = in.u64("hidden_size");
  d.inner = in.u64("intermediate_size");
  d.layers = in.u64("num_hidden_layers");
  d.heads = in.u64("num_attention_heads");
  d.kv_heads = in.u64("num_key_value_heads");
  d.head_dim = in.u64("head_dim");
  d.positions = in.u64("max_position_embeddings");
  d.norm_epsilon = in.number("norm_eps");
  d.rope_theta = in.number("rope_theta");
  if (!in.any("rope_scaling").is_null()) {
    in.object("rope_scaling", [&](json_fields& s) {
      d.rope_scaling = {s.number("factor"), s.number("low_freq_factor"),
                        s.number("high_freq_factor"), s.u64("original_max_position_embeddings")};
    });
  }
  d.tied = in.boolean("tie_word_embeddings");
  d.bias = in.boolean("bias");
  d.initializer_range = in.number("initializer_range");
  d.dropout = in.number("dropout");
  return d;
}

hash128 hash_from_hex(json_fields& in, std::string_view name, std::string_view hex) {
  hash128 h;
  const auto half = [&](std::size_t from, std::uint64_t& value) {
    const char* begin = hex.data() + from;
    const auto [end, problem] = std::from_chars(begin, begin + 16, value, 16);
    return problem == std::errc{} && end == begin + 16;
  };
  if (hex.size() != hash_digits || !half(0, h.high) || !half(16, h.low)) {
    in.fail(name, "expected a hash of 32 hex digits");
  }
  return h;
}

manifest read_fields(json_fields& in) {
  manifest m;
  facts& a = m.about;
  a.run_id = in.text("run_id");
  a.step = in.u64("step");
  a.data_position = in.u64("data_position");
  a.updates = in.u64("updates");
  a.tokens = in.u64("tokens");
  in.object("model", [&](json_fields& f) { a.model = read_model(f); });
  in.each("config", [&](json_fields& f) { a.config.emplace_back(f.text("key"), f.text("value")); });
  a.numerics_class = in.text("numerics_class");
  a.numerics_version = in.u64("numerics_version");
  a.data_digest = in.text("data_digest");
  a.tokenizer = in.text("tokenizer");
  a.record = in.any("record");
  in.each("history", [&](json_fields& f) { a.history.push_back({f.u64("step"), f.text("what")}); });
  in.each("files", [&](json_fields& f) {
    file_entry e{f.text("name"), f.u64("size"), {}};
    for (const std::string& hex : f.texts("blocks")) {
      e.blocks.push_back(hash_from_hex(f, "blocks", hex));
    }
    m.files.push_back(std::move(e));
  });
  m.weights_hash = hash_from_hex(in, "weights_hash", in.text("weights_hash"));
  m.state_hash = hash_from_hex(in, "state_hash", in.text("state_hash"));
  (void)in.text("check");  // compared before
  return m;
}

error damaged(const std::string& file, std::string_view why) {
  return {exit_code::io, fmt::format("{}: {}", file, why)};
}

}  // namespace

std::string to_text(const manifest& m) {
  const facts& a = m.about;
  json_page out;
  out.u64("format", manifest_format)
      .text("run_id", a.run_id)
      .u64("step", a.step)
      .u64("data_position", a.data_position)
      .u64("updates", a.updates)
      .u64("tokens", a.tokens);
  write_model(out, a.model);
  out.begin_array("config");
  for (const auto& [key, value] : a.config) {
    out.begin_element().text("key", key).text("value", value).end();
  }
  out.end()
      .text("numerics_class", a.numerics_class)
      .u64("numerics_version", a.numerics_version)
      .text("data_digest", a.data_digest)
      .text("tokenizer", a.tokenizer)
      .raw("record", a.record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
      .begin_array("history");
  for (const history_entry& h : a.history) {
    out.begin_element().u64("step", h.step).text("what", h.what).end();
  }
  out.end().begin_array("files");
  for (const file_entry& f : m.files) {
    out.begin_element().text("name", f.name).u64("size", f.size).begin_array("blocks");
    for (const hash128& h : f.blocks) out.element(h.hex());
    out.end().end();
  }
  out.end().text("weights_hash", m.weights_hash.hex()).text("state_hash", m.state_hash.hex());
  std::string text = out.finish();
  text.resize(text.size() - std::string_view("\n}\n").size());
  const std::string check = hash_text(text).hex();
  return text.append(check_prefix).append(check).append(check_suffix);
}

result<manifest> parse_manifest(std::string_view text, const std::string& file) {
  const std::size_t tail = check_prefix.size() + hash_digits + check_suffix.size();
  if (text.size() < tail || !text.ends_with(check_suffix) ||
      text.substr(text.size() - tail, check_prefix.size()) != check_prefix) {
    return damaged(file, "does not end with its own hash: it is cut short or was edited");
  }
  const std::string_view body = text.substr(0, text.size() - tail);
  if (hash_text(body).hex() != text.substr(body.size() + check_prefix.size(), hash_digits)) {
    return damaged(file, "does not match its own hash: it is damaged or was edited");
  }
  auto parsed = parse_json(text, file);
  if (!parsed) return damaged(file, parsed.failure().message);
  json_fields in(*parsed, file);
  const std::uint64_t format = in.u64("format");
  if (!in.failed() && format != manifest_format) {
    return damaged(file, fmt::format("has format {}, this program reads format {}: use the program "
                                     "that wrote it",
                                     format, manifest_format));
  }
  manifest m = read_fields(in);
  if (auto s = in.finish(); !s) return error{exit_code::io, s.failure().message};
  return m;
}

result<manifest> read_manifest(file_system& files, const std::string& folder) {
  const std::string path = join_path(folder, manifest_name);
  auto text = read_file(files, path, longest_manifest);
  if (!text) return text.failure();
  return parse_manifest(*text, path);
}

}  // namespace troupe::checkpoint
