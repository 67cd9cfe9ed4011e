// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/bpe.hpp>

#include "support/bpe_cases.hpp"
#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"

#include <penstock/core/random.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;
using penstock_test::fixture;

static_assert(ps::codec<ps::bpe>);
static_assert(ps::codec<ps::bpe_as<std::uint16_t>>);

namespace bpe_test {

std::string file_text(const std::filesystem::path& path) {
  const auto bytes = codec_test::file_bytes(path);
  return std::string(ps::text_of(bytes));
}
const std::filesystem::path& folder() {
  static const std::filesystem::path all = fixture("tokenizers");
  return all;
}
ps::bpe gpt(const ps::bpe_options& options = {}) {
  return ps::bpe::from_file((folder() / "gpt.tokenizer").string(), options);
}

/// A tokenizer.json whose only tokens are bytes, with something in the place of a part of it.
std::string byte_json(const std::string& from = "", const std::string& to = "") {
  std::string vocabulary, other;
  std::size_t next = 256;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const std::size_t code = printable ? byte : next++;
    constexpr std::string_view digits = "0123456789abcdef";
    vocabulary += (byte == 0 ? "\"\\u0" : ", \"\\u0");
    for (const int shift : {8, 4, 0}) vocabulary += digits[code >> shift & 15];
    vocabulary += "\": " + std::to_string(byte);
  }
  std::string all = R"({"added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "ByteLevel", )"
                    R"("add_prefix_space": false, "use_regex": true}, "post_processor": null, "model": )"
                    R"({"type": "BPE", "dropout": null, "unk_token": null, "vocab": {)" +
                    vocabulary + R"(}, "merges": []}})";
  if (!from.empty()) {
    const std::size_t at = all.find(from);
    REQUIRE(at != std::string::npos);
    all.replace(at, from.size(), to);
  }
  return all;
}

/// Byte-pair encoding as it is defined: all pairs are looked at before each merge.
std::vector<std::uint32_t> by_definition(const ps::detail::bpe_model& model, std::string_view word) {
  std::vector<std::uint32_t> tokens;
  for (const char c : word) tokens.push_back(model.bytes[static_cast<unsigned char>(c)]);
  for (;;) {
    std::size_t best = 0;
    std::uint64_t lowest = ps::detail::pair_merges::none;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const std::uint64_t merge = model.merges.find(tokens[i], tokens[i + 1]);
      if (merge >= lowest) continue;
      best = i;
      lowest = merge;
    }
    if (lowest == ps::detail::pair_merges::none) return tokens;
    tokens[best] = static_cast<std::uint32_t>(lowest);
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

}  // namespace bpe_test

TEST_CASE("codec/bpe: the tokens of tokenizers and of tiktoken") {
  using namespace bpe_test;
  const auto texts = penstock_test::token_texts(folder());
  REQUIRE(texts.size() > 50);
  std::size_t cases = 0;
  for (const auto& one : penstock_test::token_cases(folder())) {
    if (one.kind == "sentencepiece") continue;
    ++cases;
    auto tokenizer = penstock_test::bpe_of(folder(), one);
    penstock_test::check_tokens(tokenizer, folder(), one, texts);
    for (const std::size_t words : {std::size_t{0}, std::size_t{1}, std::size_t{7}}) {
      tokenizer.options.cached_words = words;
      penstock_test::check_tokens(tokenizer, folder(), one, texts);
    }
    penstock_test::check_tokens(penstock_test::bpe_of<std::uint16_t>(folder(), one), folder(), one, texts);
    penstock_test::check_tokens(penstock_test::bpe_of<std::int64_t>(folder(), one), folder(), one, texts);
  }
  CHECK(cases == 25);
}

TEST_CASE("codec/bpe: tokens become the text again") {
  using namespace bpe_test;
  for (const auto& one : penstock_test::token_cases(folder())) {
    if (one.name != "gpt" && one.name != "llama" && one.kind != "tiktoken") continue;
    INFO(one.name);
    const auto tokenizer = penstock_test::bpe_of(folder(), one);
    for (const std::string& text : penstock_test::token_texts(folder()))
      CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  }
}

TEST_CASE("codec/bpe: the vocabulary") {
  using namespace bpe_test;
  const ps::bpe tokenizer = gpt();
  CHECK(tokenizer.vocab_size() == 400);
  CHECK(tokenizer.token_to_id("<|endoftext|>") == 0u);
  CHECK(tokenizer.id_to_token(0) == "<|endoftext|>");
  CHECK(tokenizer.token_to_id("no such token") == std::nullopt);
  CHECK(tokenizer.id_to_token(400).data() == nullptr);
  const auto space = tokenizer.token_to_id(" ");
  REQUIRE(space.has_value());
  CHECK(tokenizer.id_to_token(*space) == " ");
  const std::uint32_t unknown[] = {400};
  const auto error = caught([&] { static_cast<void>(tokenizer.decode(unknown)); });
  CHECK(error.code == ps::errc::argument);
  CHECK_THAT(error.line, contains("no token 400; its ids are below 400"));

  ps::bpe::scratch scratch;
  const auto none = caught([&] { static_cast<void>(ps::bpe{}.decode(std::string_view("a"), scratch)); });
  CHECK_THAT(none.line, contains("bpe has no vocabulary; write decode<bpe>(bpe::from_file("));
  CHECK(ps::bpe{}.vocab_size() == 0);
  CHECK(ps::bpe{}.token_to_id("a") == std::nullopt);
}

TEST_CASE("codec/bpe: ids that a type of tokens cannot hold") {
  using namespace bpe_test;
  const std::string file = (folder() / "gpt.tiktoken").string();
  const auto make = [&](std::uint32_t id) {
    return ps::bpe_as<std::uint16_t>::from_tiktoken(file, ps::token_patterns::gpt2, {{"<|end|>", id}});
  };
  CHECK(make(65'535).vocab_size() == 65'536);
  CHECK(make(65'535).encode("<|end|>") == std::vector<std::uint16_t>{65'535});
  const auto error = caught([&] { static_cast<void>(make(65'536)); });
  CHECK(error.code == ps::errc::argument);
  CHECK_THAT(error.line, contains("ids up to 65536, which std::uint16_t cannot hold; write bpe instead"));
  CHECK_THAT(caught([&] { static_cast<void>(make(1u << 22)); }).line, contains("an id below 4194304"));
  CHECK_THAT(caught([&] { static_cast<void>(make(7)); }).line, contains("has the id 7, which is that of"));
}

TEST_CASE("codec/bpe: special tokens in a text are tokens, text or an error") {
  using namespace bpe_test;
  const auto tokens = [](ps::special_tokens special) {
    return gpt({.special = special}).encode("a<|endoftext|>");
  };
  CHECK(tokens(ps::special_tokens::recognise).back() == 0);
  CHECK(tokens(ps::special_tokens::text).back() != 0);
  CHECK(gpt().decode(tokens(ps::special_tokens::text)) == "a<|endoftext|>");
  const auto error = caught([&] { static_cast<void>(tokens(ps::special_tokens::refuse)); });
  CHECK(error.code == ps::errc::format);
  CHECK_THAT(error.line,
             contains("the text has the special token \"<|endoftext|>\"") && contains("[offset 1]"));
}

TEST_CASE("codec/bpe: text that is no UTF-8 is an error, or replaced") {
  using namespace bpe_test;
  const auto error = caught([] { static_cast<void>(gpt().encode("abc\xff")); });
  CHECK(error.code == ps::errc::format);
  CHECK_THAT(error.line, contains("the text is not UTF-8") && contains("invalid_utf8::replace") &&
                             contains("[offset 3]"));
  const ps::bpe replacing = gpt({.invalid = ps::invalid_utf8::replace});
  // As bytes.decode(errors="replace") of Python has it.
  for (const auto& [text, plain] : std::vector<std::pair<std::string, std::string>>{
           {"abc\xff", "abc\xef\xbf\xbd"},
           {"\xc3", "\xef\xbf\xbd"},
           {"\xe4\xbd", "\xef\xbf\xbd"},
           {"\xe4\xbdx", "\xef\xbf\xbdx"},
           {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
           {"\xf0\x9f\x98", "\xef\xbf\xbd"},
           {"\xf0\x80\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
           {"\xf4\x90z", "\xef\xbf\xbd\xef\xbf\xbdz"},
           {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
           {"\xe4\xbd\xa0\x80\xe4", "\xe4\xbd\xa0\xef\xbf\xbd\xef\xbf\xbd"}}) {
    CAPTURE(plain);
    CHECK(replacing.encode(text) == gpt().encode(plain));
  }
  CHECK(replacing.encode("abc") == gpt().encode("abc"));
}

TEST_CASE("codec/bpe: words of any length, by the definition") {
  using namespace bpe_test;
  const auto model = ps::detail::read_tiktoken(file_text(folder() / "gpt.tiktoken"));
  ps::rng random(1, 2, 3);
  ps::detail::long_word memory;
  for (std::size_t round = 0; round < 600; ++round) {
    const std::size_t size = 1 + random.below(round % 5 == 0 ? 400 : 60);
    std::string word;
    while (word.size() < size) {
      // bytes, and tokens, so that there is much to merge
      const auto token = static_cast<std::uint32_t>(random.below(model.texts.size()));
      if (model.texts.has(token)) word += model.texts[token];
    }
    std::vector<std::uint32_t> found(word.size());
    found.resize(model.encode(word, word, found.data(), memory));
    if (model.ids.find(word, model.texts) != ps::detail::no_token)
      CHECK(found.size() == 1);
    else
      CHECK(found == by_definition(model, word));
  }
  // A megabyte without a space: with time that is the square of it, this would be the last test to end.
  const ps::bpe tokenizer = gpt();
  const std::string one_word(1 << 20, 'e');
  CHECK(tokenizer.decode(tokenizer.encode(one_word)) == one_word);
}

TEST_CASE("codec/bpe: a byte that the vocabulary lacks is an error") {
  using namespace bpe_test;
  const ps::bpe tokenizer = ps::bpe::from_str(byte_json("\"\\u007a\": 122, ", ""));
  CHECK(tokenizer.encode("ab") == std::vector<std::uint32_t>{97, 98});
  const auto error = caught([&] { static_cast<void>(tokenizer.encode("ab yz")); });
  CHECK(error.code == ps::errc::format);
  CHECK_THAT(error.line, contains("no token for the byte 122") && contains("[offset 4]"));
}

TEST_CASE("codec/bpe: a tokenizer.json that asks for more is refused with a sentence") {
  using namespace bpe_test;
  CHECK(ps::bpe::from_str(byte_json()).encode("a b") == std::vector<std::uint32_t>{97, 32, 98});
  CHECK(ps::bpe::from_str(
            byte_json("\"normalizer\": null", R"("normalizer": {"type": "Sequence", "normalizers": []})"))
            .vocab_size() == 256);
  const std::string level = R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})";
  const auto split = [&](const std::string& what) {
    return R"({"type": "Sequence", "pretokenizers": [{"type": "Split", )" + what + "}, " + level + "]}";
  };
  struct row {
    std::string from, to, said;
  };
  for (const auto& [from, to, said] : std::vector<row>{
           {"\"normalizer\": null", R"("normalizer": {"type": "Lowercase"})",
            "normalizer is \"Lowercase\", which bpe does not have: it has NFC, NFD, "},
           {"\"normalizer\": null",
            R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Strip"}]})",
            "normalizer.normalizers[1] is \"Strip\", which bpe does not have"},
           {"\"normalizer\": null",
            R"("normalizer": {"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"})",
            "normalizer is \"a Replace of a regular expression\", which bpe does not have"},
           {"\"normalizer\": null",
            R"("normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "b"})",
            "normalizer replaces a text that is empty"},
           {"\"normalizer\": null",
            R"("normalizer": {"type": "Replace", "pattern": {"String": ")" + std::string(257, 'a') +
                R"("}, "content": "b"})",
            "normalizer replaces a text of more than 256 bytes"},
           {"\"normalizer\": null", R"("normalizer": {"type": "Prepend"})",
            "normalizer.prepend is not a text"},
           {"\"normalizer\": null", R"("normalizer": 7)", "normalizer has no \"type\""},
           {"\"BPE\"", "\"WordPiece\"", "model is a WordPiece, which bpe does not have"},
           {"\"dropout\": null", "\"dropout\": 0.1", "model is one with dropout"},
           {"\"dropout\": null", "\"byte_fallback\": true", "model is one with byte_fallback"},
           {"\"dropout\": null", "\"byte_fallback\": 3", "\"byte_fallback\", which is not true or false"},
           {"\"dropout\": null", "\"end_of_word_suffix\": \"</w>\"", "model is one with end_of_word_suffix"},
           {"\"merges\": []", "\"merges\": [\"a\"]", "model.merges has at 0 what is not two tokens"},
           {"\"merges\": []", "\"merges\": [[\"a\", \"b\"]]",
            "merge 0 needs the token \"ab\", which the vocabulary"},
           {"\"merges\": []", "\"merges\": {}", "model.merges is not a list"},
           {"\"\\u0061\": 97", "\"\\u0061\": 98", "both have the id 98"},
           {"\"\\u0061\": 97", "\"\\u0061\": -1", "model.vocab is not an id, a whole number below 4194304"},
           {"\"\\u0061\": 97", "\"\\u0061\": 4194304", "model.vocab is not an id"},
           {"\"\\u0061\": 97", "\"\\u0061\": 97.5", "model.vocab is not an id"},
           {level, "null", "pre_tokenizer is without ByteLevel"},
           {level, R"({"type": "Metaspace"})", "pre_tokenizer is Metaspace"},
           {level, R"({"type": "Sequence", "pretokenizers": [)" + level + ", " + level + "]}",
            "pre_tokenizer.pretokenizers[1] is ByteLevel behind ByteLevel"},
           {level, split(R"("pattern": {"Regex": "a"}, "behavior": "MergedWithNext", "invert": false)"),
            "pre_tokenizer.pretokenizers[0] is a Split that is MergedWithNext"},
           {level, split(R"("pattern": {"Regex": "(a"}, "behavior": "Isolated")"),
            "PCRE2 does not take the pattern: missing closing parenthesis, in "
            "pre_tokenizer.pretokenizers[0].pattern"},
           {level, split(R"("pattern": {"Regex": "\\w+"}, "behavior": "Isolated")"), "the pattern has \\w"},
           {level, split(R"("pattern": {}, "behavior": "Isolated")"),
            "pretokenizers[0].pattern is not a text"},
           {level, split(R"("pattern": {"String": "a"})"), "pretokenizers[0].behavior is not a text"},
           {"\"added_tokens\": []", R"("added_tokens": [{"id": 256, "content": ""}])",
            "added_tokens[0] is empty"},
           {"\"added_tokens\": []", R"("added_tokens": [{"id": 97, "content": "<s>"}])",
            "the added token \"<s>\" has the id 97, which is that of \"a\""},
           {"\"added_tokens\": []", R"("added_tokens": [{"id": 256, "content": "<s>", "single_word": true}])",
            "added_tokens[0] is a single_word"},
           {"\"added_tokens\": []",
            R"("added_tokens": [{"id": 256, "content": "<s>"}, {"id": 257, "content": "<s>"}])",
            "added_tokens[1] is there twice"},
           {"\"post_processor\": null",
            R"("post_processor": {"type": "BertProcessing", "sep": ["</s>", 256], "cls": ["<s>", 0]})",
            "post_processor puts the id 256 around texts, which is no token's"},
           {"\"model\"", "\"no_model\"", "it has no \"model\""},
           {"\"added_tokens\": []", "\"added_tokens\": [", "not JSON"}}) {
    CAPTURE(to);
    const auto error = caught(
        [&] { static_cast<void>(ps::bpe::from_str(byte_json(from, to), {.add_special_tokens = true})); });
    CHECK(error.code == ps::errc::format);
    CHECK_THAT(error.line, contains(said));
  }
  // What is put around a text may be what bpe does not know, unless it is asked for.
  const std::string around = byte_json("\"post_processor\": null", R"("post_processor": {"type": "Chat"})");
  CHECK(ps::bpe::from_str(around).vocab_size() == 256);
  CHECK_THAT(caught([&] { static_cast<void>(ps::bpe::from_str(around, {.add_special_tokens = true})); }).line,
             contains("post_processor is Chat"));
  ps::bpe later = ps::bpe::from_str(around);
  later.options.add_special_tokens = true;
  const auto error = caught([&] { static_cast<void>(later.encode("a")); });
  CHECK(error.code == ps::errc::argument);
  CHECK_THAT(error.line, contains("post_processor is Chat"));
  ps::bpe llama = ps::bpe::from_file((folder() / "llama.tokenizer").string());
  const auto inside = llama.encode("a");
  llama.options.add_special_tokens = true;
  CHECK(llama.encode("a") == std::vector<std::uint32_t>{0, inside.at(0), 1});
}

TEST_CASE("codec/bpe: files that are not there, or damaged") {
  using namespace bpe_test;
  const penstock_test::temp_dir dir;
  const auto missing = caught([] { static_cast<void>(ps::bpe::from_file("/no such file")); });
  CHECK(missing.code == ps::errc::missing);
  CHECK_THAT(missing.line, contains("[file /no such file]"));
  const auto read = [&](std::string_view contents) {
    const std::string path = (dir.path() / "some").string();
    std::ofstream(path, std::ios::binary) << contents;
    return caught([&] { static_cast<void>(ps::bpe::from_tiktoken(path, ps::token_patterns::gpt2)); });
  };
  CHECK(read("YQ== 0\nYg== 1\r\n\nYWI= 2\n").line.empty());
  for (const auto& [contents, said] : std::vector<std::pair<std::string_view, std::string>>{
           {"", "has no lines"},
           {"YQ== 0\nYg== 0\n", "a rank is there twice [file "},
           {"YQ== 0\nYQ== 1\n", "a token is there twice"},
           {"YQ== 0\nYg==\n", "is not a token in base64 and its rank"},
           {"YQ== 0\nYg== x\n", "is not a token in base64"},
           {"YQ== 0\nYg=a 1\n", "is not a token in base64"},
           {"YQ== 0\n==== 1\n", "is not a token in base64"},
           {"YQ== 0\nYg== 99999999999999999999\n", "is not a token in base64"},
           {"YQ== 0\n{\"model\": 1}\n", "is this a file of tiktoken?"}}) {
    CAPTURE(contents);
    const auto error = read(contents);
    CHECK(error.code == ps::errc::format);
    CHECK_THAT(error.line, contains(said) && contains("some, "));
    CHECK_THAT(error.line, contains(contents.empty() ? "offset 0" : "offset 7"));
  }
  const std::string merges = (dir.path() / "merges").string();
  std::ofstream(merges) << "#version: 0.2\n1 2 3\n";
  const auto bad =
      caught([&] { static_cast<void>(ps::bpe::from_files((folder() / "vocab.bpe").string(), merges)); });
  CHECK_THAT(bad.line, contains("not two tokens with a space between them") && contains("offset 14") &&
                           contains(merges));

  // Whatever is done to the bytes of a file, it is read or refused.
  for (const std::string name : {"deepseek.tokenizer", "roberta.tokenizer", "llama.tiktoken"}) {
    const std::string whole = file_text(folder() / name);
    ps::rng random(3, 0, 0);
    for (int round = 0; round < 300; ++round) {
      std::string harmed = whole;
      const std::size_t at = random.below(harmed.size());
      if (round % 3 == 0)
        harmed.resize(at);
      else if (round % 3 == 1)
        harmed[at] = static_cast<char>(random.below(256));
      else
        harmed.insert(at, harmed.substr(random.below(harmed.size()), random.below(40)));
      const auto error = caught([&] {
        if (name.ends_with("tokenizer"))
          static_cast<void>(
              ps::bpe::from_str(harmed, {.add_special_tokens = true}).encode("a dog's 7 bones"));
        else
          static_cast<void>(ps::detail::read_tiktoken(harmed));
      });
      if (!error.line.empty()) CHECK(ps::depends_on_bytes(error.code));
    }
  }
}

TEST_CASE("codec/bpe: patterns that mean the same to PCRE2, and those that do not") {
  using ps::detail::pattern_dialect;
  const auto rust = [](std::string_view p) { return ps::detail::pcre2_pattern(p, pattern_dialect::rust); };
  const auto onig = [](std::string_view p) { return ps::detail::pcre2_pattern(p, pattern_dialect::onig); };
  CHECK(rust(R"(\s+(?!\S)|[^\s\p{L}]++)") ==
        R"([\p{Z}\t-\r\x{85}]+(?![^\p{Z}\t-\r\x{85}])|[^\p{Z}\t-\r\x{85}\p{L}]++)");
  CHECK(rust("^a$") == "\\Aa\\z");
  CHECK(onig("^a$") == "(?m:^)a(?m:$)");
  CHECK(onig(R"([]^$(\]]\u00e4\v)") == R"([]^$(\]]\x{00e4}\x{b})");
  CHECK(rust("a{1,3}+") == "a{1,3}+");
  CHECK(onig("(?i)b|c") == "(?i)b|c");
  CHECK(rust("a{2}?(?i)\\pL") == "a{2}?(?i)\\pL");
  CHECK(onig(R"(\p{L}+[}]+)") == R"(\p{L}+[}]+)");
  for (const auto& [pattern, said] :
       std::vector<std::pair<std::string_view, std::string>>{{"a{1,3}+", "}+"},
                                                             {"a{2}?", "}?"},
                                                             {"\\pL+", "\\p"},
                                                             {"a{,2}", "{,"},
                                                             {"a(?i)b|c", "(?i)"},
                                                             {"\\w", "\\w"},
                                                             {"[\\S]", "\\S"},
                                                             {"\\b", "\\b"},
                                                             {"\\1", "\\1"},
                                                             {"\\h", "\\h"},
                                                             {"[a[b]]", "[ within a class"},
                                                             {"[a&&b]", "&&"},
                                                             {"(?m)a", "(?m"},
                                                             {"(?<n>a)", "(?<"},
                                                             {"(*UTF)", "(*U"},
                                                             {"\\p{L", "a { without }"},
                                                             {"\\", "\\"}}) {
    CAPTURE(pattern);
    const auto error = caught([&] { static_cast<void>(onig(pattern)); });
    CHECK(error.code == ps::errc::format);
    CHECK_THAT(error.line, contains("the pattern has " + said));
  }
  // White space is Unicode's: U+180E is none, which PCRE2 takes for one.
  const ps::detail::token_pattern space(onig("\\s"));
  ps::detail::pattern_memory memory;
  ps::detail::token_pattern::match found;
  CHECK_FALSE(space.find("a\xe1\xa0\x8e", 0, found, memory));
  CHECK(space.find("a\xe3\x80\x80", 0, found, memory));
  CHECK(found.begin == 1);
  CHECK(found.end == 4);
  // A pattern that takes for ever ends.
  const ps::detail::token_pattern slow(onig("(a|aa)+[bc]"));
  const std::string many(1000, 'a');
  const auto error = caught([&] { static_cast<void>(slow.find(many, 0, found, memory)); });
  CHECK(error.code == ps::errc::limit);
  CHECK_THAT(error.line, contains("the pattern takes too long on this text"));
}

TEST_CASE("codec/bpe: a text is normalised between the tokens that are sought before, as in tokenizers") {
  using namespace bpe_test;
  const auto with = [](const std::string& normalizer, const std::string& added = "[]") {
    std::string json = byte_json("\"normalizer\": null", "\"normalizer\": " + normalizer);
    json.replace(json.find("[]"), 2, added);
    return ps::bpe::from_str(json);
  };
  const auto bytes = [](std::string_view text) {
    std::vector<std::uint32_t> all;
    for (const char c : text) all.push_back(static_cast<unsigned char>(c));
    return all;
  };
  CHECK(with(R"({"type": "NFC"})").encode("e\u0301") == bytes("\u00e9"));
  CHECK(with(R"({"type": "NFD"})").encode("\u00e9") == bytes("e\u0301"));
  CHECK(with(R"({"type": "NFKC"})").encode("\ufb01e\u0301") == bytes("fi\u00e9"));
  CHECK(with(R"({"type": "NFKD"})").encode("\ufb01\u00e9") == bytes("fie\u0301"));
  const std::string all = R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "_"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "__"}, {"type": "NFC"}]})";
  CHECK(with(all).encode("a e\u0301 ") == bytes("_a__\u00e9__"));
  CHECK(with(all).encode("").empty());

  // A token that is not normalised is found in the text as it is, and cuts it; one that is, in what was made.
  const ps::bpe added =
      with(R"({"type": "NFC"})", R"([{"id": 256, "content": "<e\u0301>", "normalized": false},
    {"id": 257, "content": "e\u0301x", "normalized": true},
    {"id": 258, "content": "<e>", "special": true}])");
  const auto tokens = [](std::initializer_list<std::vector<std::uint32_t>> parts) {
    std::vector<std::uint32_t> made;
    for (const auto& part : parts) made.insert(made.end(), part.begin(), part.end());
    return made;
  };
  CHECK(added.encode("<e\u0301><\u00e9>") == tokens({{256}, bytes("<\u00e9>")}));
  CHECK(added.encode("e\u0301x\u00e9x") == std::vector<std::uint32_t>{257, 257});
  CHECK(added.encode("e<e>\u0301e\u0301") == tokens({bytes("e"), {258}, bytes("\u0301\u00e9")}));
  CHECK(added.token_to_id("e\u0301x") == 257u);
  CHECK(added.token_to_id("\u00e9x") == std::nullopt);
  CHECK(added.decode(std::vector<std::uint32_t>{257}) == "e\u0301x");
  CHECK_THAT(caught([&] {
               static_cast<void>(with(R"({"type": "NFC"})", R"([{"id": 256, "content": "e\u0301"},
                                      {"id": 257, "content": "\u00e9"}])"));
             }).line,
             contains("added_tokens[1] is there twice, once it is normalised"));
  CHECK_THAT(caught([&] {
               static_cast<void>(with(R"({"type": "Replace", "pattern": {"String": "qq"}, "content": ""})",
                                      R"([{"id": 256, "content": "qq"}])"));
             }).line,
             contains("added_tokens[0] is empty once it is normalised"));

  // There is an offset where the place is one of the text, and room for whatever is made of it.
  ps::bpe refusing = added;
  refusing.options.special = ps::special_tokens::refuse;
  CHECK_THAT(caught([&] { static_cast<void>(refusing.encode("ae\u0301<e>")); }).line, contains("[offset 4]"));
  std::string twice = R"({"type": "Sequence", "normalizers": [)";
  for (int i = 0; i < 32; ++i)
    twice += std::string(i == 0 ? "" : ", ") +
             R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
  const auto error = caught([&] { static_cast<void>(with(twice + "]}").encode("a")); });
  CHECK(error.code == ps::errc::limit);
  CHECK_THAT(error.line, contains("makes too many bytes of a text for bpe"));
  const ps::bpe longer = with(R"({"type": "Replace", "pattern": {"String": "a"}, "content": "12345678"})",
                              R"([{"id": 256, "content": "<s>", "special": true}])");
  std::string text;
  std::vector<std::uint32_t> expected;
  for (int i = 0; i < 1000; ++i) {
    text += "<s>a";
    expected.push_back(256);
    for (const std::uint32_t c : bytes("12345678")) expected.push_back(c);
  }
  CHECK(longer.encode(text) == expected);
  CHECK(longer.encode(std::string(4000, 'a')).size() == 32'000);
  // The limit is one for the parts of a text together.
  const ps::bpe flooding = with(R"({"type": "Prepend", "prepend": ")" + std::string(4000, 'b') + "\"}",
                                R"([{"id": 256, "content": "<s>", "special": true}])");
  CHECK(flooding.encode("<s>a<s>").size() == 4003);
  CHECK_THAT(caught([&] { static_cast<void>(flooding.encode(text)); }).line,
             contains("makes too many bytes of a text for bpe"));
}

TEST_CASE("codec/bpe: a match without characters cuts the text, as in tokenizers") {
  using namespace bpe_test;
  const std::string before = R"("pre_tokenizer": {)";
  const std::string after =
      R"json("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern":
    {"Regex": "(?=(\\d{3})+(?!\\d))"}, "behavior": "Isolated", "invert": false},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}, "none": {)json";
  std::string json = byte_json(before, after);  // digits in threes from the right
  json.replace(json.find("\"merges\": []"), 12, R"("merges": ["1 2", "2 3", "12 3"])");
  json.replace(json.find("\"vocab\": {"), 10, R"("vocab": {"12": 256, "23": 257, "123": 258, )");
  CHECK(ps::bpe::from_str(json).encode("1234123") == std::vector<std::uint32_t>{'1', 257, '4', 258});
  CHECK(ps::bpe::from_str(json).encode("123") == std::vector<std::uint32_t>{258});
  CHECK(ps::bpe::from_str(json).encode("a123\xc3\xa9") == std::vector<std::uint32_t>{'a', 258, 0xc3, 0xa9});
}

TEST_CASE("codec/bpe: no token is put before a text that is empty") {
  using namespace bpe_test;
  const ps::bpe spaced =
      ps::bpe::from_str(byte_json("\"add_prefix_space\": false", "\"add_prefix_space\": true"));
  CHECK(spaced.encode("a") == std::vector<std::uint32_t>{' ', 'a'});
  CHECK(spaced.encode("").empty());
}

TEST_CASE("codec/bpe: an added token begins in the space that another one strips, as in tokenizers") {
  using namespace bpe_test;
  const ps::bpe strips = ps::bpe::from_str(
      byte_json("\"added_tokens\": []", R"("added_tokens": [{"id": 256, "content": "<a>", "rstrip": true},
         {"id": 257, "content": "  "}, {"id": 258, "content": "<b>", "lstrip": true}])"));
  CHECK(strips.encode("<a>  x") == std::vector<std::uint32_t>{256, 257, 'x'});
  CHECK(strips.encode("<a> x") == std::vector<std::uint32_t>{256, 'x'});
  CHECK(strips.encode("<a>   <b>") == std::vector<std::uint32_t>{256, 257, 258});
}

TEST_CASE("codec/bpe: in a plan, by any number of workers") {
  using namespace bpe_test;
  const ps::bpe tokenizer = gpt();
  const auto texts = penstock_test::token_texts(folder());
  for (const unsigned workers : {0u, 1u, 3u}) {
    std::size_t i = 0;
    for (auto&& b :
         (ps::from(texts) | ps::decode<ps::bpe>(tokenizer) | ps::batch(7, ps::ragged) | ps::workers(workers))
             .epoch(0)) {
      for (std::size_t k = 0; k < b.size(); ++k, ++i) {
        const auto row = b.values()[k];
        CHECK(std::vector<std::uint32_t>(row.begin(), row.end()) == tokenizer.encode(texts[i]));
      }
    }
    CHECK(i == texts.size());
  }
  const std::vector<std::string> two{"a dog", "b"};
  for (auto&& b : (ps::from(two) |
                   ps::decode<ps::bpe_as<std::int64_t>>(ps::bpe_as<std::int64_t>::from_str(byte_json())) |
                   ps::batch(2, ps::pad_to_longest))
                      .epoch(0)) {
    const auto tokens = b.values();
    CHECK(std::vector<std::int64_t>(tokens.values().flat().begin(), tokens.values().flat().end()) ==
          std::vector<std::int64_t>{97, 32, 100, 111, 103, 98, 0, 0, 0, 0});
  }
}

TEST_CASE("codec/bpe: one scratch serves several tokenizers") {
  using namespace bpe_test;
  const ps::bpe one = gpt(), other = ps::bpe::from_str(byte_json());
  ps::bpe::scratch scratch;
  for (int round = 0; round < 3; ++round)
    for (const ps::bpe& tokenizer : {one, other}) {
      const auto tokens = tokenizer.decode(std::string_view("the loader"), scratch);
      CHECK(std::vector<std::uint32_t>(tokens.begin(), tokens.end()) == tokenizer.encode("the loader"));
    }
}

TEST_CASE("codec/bpe: nothing is allocated once the scratch has grown") {
  using namespace bpe_test;
  const auto texts = penstock_test::token_texts(folder());
  for (const auto& one : penstock_test::token_cases(folder())) {
    if (one.kind == "sentencepiece") continue;
    INFO(one.name);
    auto tokenizer = penstock_test::bpe_of<std::uint16_t>(folder(), one);
    tokenizer.options.invalid = ps::invalid_utf8::replace;
    ps::bpe::scratch scratch;
    const auto all = [&] {
      for (const std::string& text : texts)
        static_cast<void>(tokenizer.decode(std::string_view(text), scratch));
      static_cast<void>(tokenizer.decode(std::string_view("a\xff"), scratch));
    };
    all();
    CHECK(penstock_test::allocations_of(all) == 0);
  }
}

TEST_CASE("codec/bpe: GPT-2's own vocabulary") {
  const auto data = penstock_test::test_data("tokens");
  if (!data) {
    WARN("not compared with GPT-2's vocabulary, which is not there");
    return;
  }
  const auto file = [&](const char* name) { return (*data / "gpt2_bpe" / name).string(); };
  const ps::bpe tokenizer = ps::bpe::from_files(file("gpt2_bpe_encoder.json"), file("gpt2_bpe_vocab.bpe"),
                                                {{"<|endoftext|>", 50'256}});
  CHECK(tokenizer.vocab_size() == 50'257);
  CHECK(tokenizer.encode("Hello world") == std::vector<std::uint32_t>{15'496, 995});
  CHECK(tokenizer.encode("hello <|endoftext|>") == std::vector<std::uint32_t>{31'373, 220, 50'256});
  CHECK(tokenizer.decode(tokenizer.encode("It's na\u00efve, \u4f60\u597d \U0001f600")) ==
        "It's na\u00efve, \u4f60\u597d \U0001f600");
}
