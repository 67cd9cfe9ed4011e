// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/bpe_tokenizer.hpp>
#include <penstock/codec/json.hpp>

#include <map>

/// tokenizer.json of Hugging Face's tokenizers.
namespace penstock::inline v0_1::detail {

/// The pattern that `tokenizers` has for ByteLevel, that of GPT-2.
inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// The bytes that a text of GPT-2's alphabet stands for, in which each byte is a printable character; false
/// if it has another character. Source: bytes_to_unicode in encoder.py of GPT-2.
[[nodiscard]] inline bool from_byte_alphabet(std::string_view text, std::string& bytes) {
  static constexpr auto alphabet = [] {
    std::array<std::int16_t, 324> made{};
    made.fill(-1);
    std::size_t next = 256;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      made[printable ? byte : next++] = static_cast<std::int16_t>(byte);
    }
    return made;
  }();
  bytes.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t code = static_cast<unsigned char>(text[i]);
    if (code >= 0xc0) {
      if (code >= 0xe0 || i + 1 == text.size()) return false;
      code = (code & 0x1f) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f);
    }
    if (code >= alphabet.size() || alphabet[code] < 0) return false;
    bytes += static_cast<char>(alphabet[code]);
  }
  return true;
}

/// Makes a model of a vocabulary and merges, as `tokenizers` writes them.
class bpe_model_maker {
 public:
  void token(std::string_view text, std::uint32_t id) {
    if (raw_.has(id))
      throw error(errc::format, {"the tokens ", quoted(bytes_of(raw_[id]), 40), " and ",
                                 quoted(bytes_of(text), 40), " both have the id ", id});
    raw_.set(id, text);
    raw_ids_.put(id, raw_);
    // A token with other characters stands for its own text, and can only be an added one.
    const bool reachable = from_byte_alphabet(text, bytes_);
    made_.texts.set(id, reachable ? std::string_view(bytes_) : text);
    if (reachable && !bytes_.empty()) made_.ids.put(id, made_.texts);
  }
  void merge(std::string_view left, std::string_view right, std::uint32_t rank) {
    joined_.assign(left).append(right);
    made_.merges.put(known(left, rank), known(right, rank), rank, known(joined_, rank));
  }
  [[nodiscard]] bpe_model finish() {
    made_.find_bytes();
    return std::move(made_);
  }

 private:
  [[nodiscard]] std::uint32_t known(std::string_view text, std::uint32_t rank) const {
    const std::uint32_t id = raw_ids_.find(text, raw_);
    if (id == no_token)
      throw error(errc::format, {"merge ", rank, " needs the token ", quoted(bytes_of(text), 40),
                                 ", which the vocabulary does not have"});
    return id;
  }

  token_texts raw_;
  ids_by_text raw_ids_;
  std::string bytes_, joined_;
  bpe_model made_;
};

[[noreturn, gnu::cold]] inline void refuse_tokenizer(std::string_view place, std::string_view what) {
  throw error(errc::format, {"the tokenizer's ", place, ' ', what});
}
[[noreturn, gnu::cold]] inline void refuse_feature(std::string_view place, std::string_view what) {
  throw error(errc::format, {"the tokenizer's ", place, " is ", what,
                             ", which bpe does not have: it reads byte-level BPE, with the pre-tokenizers "
                             "ByteLevel, Split and Digits"});
}

/// Reads tokenizer.json.
class tokenizer_json {
 public:
  /// Throws `errc::format` for what is no tokenizer, or has what `bpe` does not have, and says where.
  [[nodiscard]] static bpe_tokenizer read(std::string_view text, bool around) {
    no_scratch none;
    const json_value all = json{.limit = 512_MiB, .depth = 32}.decode(text, none);
    if (!all.is_object() || !all.contains("model"))
      throw error(errc::format, "the file is no tokenizer.json: it has no \"model\"");
    tokenizer_json reader;
    reader.normalizer(member(all, "normalizer"), "normalizer");
    reader.model(all["model"]);
    reader.pre_tokenizer(member(all, "pre_tokenizer"), "pre_tokenizer");
    if (!reader.byte_level_) refuse_feature("pre_tokenizer", "without ByteLevel");
    reader.added(member(all, "added_tokens"));
    try {
      reader.post_processor(member(all, "post_processor"), "post_processor");
    } catch (const error& e) {
      if (around) throw;
      reader.made_.not_around = e.message();
    }
    return std::move(reader.made_);
  }

 private:
  using place_name = const std::string&;

  /// A value of an object, or null.
  [[nodiscard]] static const json_value& member(const json_value& object, const char* name) {
    static const json_value none;
    if (!object.is_object()) return none;
    const auto at = object.find(name);
    return at == object.end() ? none : *at;
  }
  [[nodiscard]] static std::string type_of(const json_value& object, place_name place) {
    const json_value& type = member(object, "type");
    if (!type.is_string()) refuse_tokenizer(place, "has no \"type\"");
    return type.get<std::string>();
  }
  [[nodiscard]] static bool flag(const json_value& object, const char* name, bool otherwise,
                                 place_name place) {
    const json_value& value = member(object, name);
    if (value.is_null()) return otherwise;
    if (!value.is_boolean())
      refuse_tokenizer(place, text({"has \"", name, "\", which is not true or false"}));
    return value.get<bool>();
  }
  [[nodiscard]] static const std::string& words(const json_value& value, std::string_view place) {
    if (!value.is_string()) refuse_tokenizer(place, "is not a text");
    return value.get_ref<const std::string&>();
  }
  [[nodiscard]] static const json_value& list(const json_value& value, std::string_view place) {
    if (!value.is_array()) refuse_tokenizer(place, "is not a list");
    return value;
  }
  [[nodiscard]] static std::uint32_t id(const json_value& value, std::string_view place) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= max_tokens)
      refuse_tokenizer(place, text({"is not an id, a whole number below ", max_tokens}));
    return value.get<std::uint32_t>();
  }

  [[nodiscard]] std::uint32_t known_id(const json_value& value, std::string_view place) const {
    const std::uint32_t number = id(value, place);
    if (!made_.model.texts.has(number))
      refuse_tokenizer(place, text({"puts the id ", number, " around texts, which is no token's"}));
    return number;
  }

  void normalizer(const json_value& value, place_name place, int depth = 0) {
    if (value.is_null()) return;
    const std::string type = type_of(value, place);
    if (type == "Sequence") {
      if (depth > 3) refuse_normalizer(place, "a Sequence within a Sequence within another one");
      std::size_t i = 0;
      for (const json_value& one : list(member(value, "normalizers"), place))
        normalizer(one, text({place, ".normalizers[", i++, "]"}), depth + 1);
      return;
    }
    if (made_.normalizers.size() >= 32) refuse_tokenizer(place, "has more than 32 steps");
    normalize_step step;
    if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
      step.form = &normal_form::of(type == "NFC"    ? unicode_form::nfc
                                   : type == "NFD"  ? unicode_form::nfd
                                   : type == "NFKC" ? unicode_form::nfkc
                                                    : unicode_form::nfkd);
    } else if (type == "Prepend") {
      step.to = words(member(value, "prepend"), place + ".prepend");
    } else if (type == "Replace") {
      const json_value& literal = member(member(value, "pattern"), "String");
      if (literal.is_null()) refuse_normalizer(place, "a Replace of a regular expression");
      step.from = words(literal, place + ".pattern");
      if (step.from.empty()) refuse_tokenizer(place, "replaces a text that is empty");
      step.to = words(member(value, "content"), place + ".content");
      // So that a search takes no product of both texts' sizes.
      if (step.from.size() > 256) refuse_tokenizer(place, "replaces a text of more than 256 bytes");
    } else {
      refuse_normalizer(place, type);
    }
    made_.normalizers.push_back(std::move(step));
  }
  [[noreturn, gnu::cold]] static void refuse_normalizer(std::string_view place, std::string_view what) {
    throw error(errc::format, {"the tokenizer's ", place, " is ", quoted(bytes_of(what), 60),
                               ", which bpe does not have: it has NFC, NFD, NFKC, NFKD, Prepend and Replace "
                               "with a plain text; normalise the texts before, and set it to null"});
  }

  void model(const json_value& value) {
    const json_value& type = member(value, "type");
    if (type.is_string() && type != "BPE") refuse_feature("model", text({"a ", words(type, "model.type")}));
    for (const char* const affix : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (const json_value& set = member(value, affix); set.is_string() && set != "")
        refuse_feature("model", text({"one with ", affix}));
    if (flag(value, "byte_fallback", false, "model")) refuse_feature("model", "one with byte_fallback");
    if (const json_value& rate = member(value, "dropout"); rate.is_number() && rate != 0)
      refuse_feature("model", "one with dropout");
    const bool whole = flag(value, "ignore_merges", false, "model");
    bpe_model_maker maker;
    const json_value& vocabulary = member(value, "vocab");
    if (!vocabulary.is_object()) refuse_tokenizer("model.vocab", "is not an object");
    for (const auto& [token, number] : vocabulary.items()) maker.token(token, id(number, "model.vocab"));
    std::uint32_t rank = 0;
    for (const json_value& one : list(member(value, "merges"), "model.merges")) {
      if (one.is_array() && one.size() == 2) {
        maker.merge(words(one[0], "model.merges"), words(one[1], "model.merges"), rank++);
      } else {
        const std::string& pair = words(one, "model.merges");
        const std::size_t space = pair.find(' ');
        if (space == pair.npos || pair.find(' ', space + 1) != pair.npos)
          refuse_tokenizer("model.merges", text({"has at ", rank, " what is not two tokens"}));
        maker.merge(pair.substr(0, space), pair.substr(space + 1), rank++);
      }
    }
    made_.model = maker.finish();
    made_.model.whole_words = whole;
  }

  void pre_tokenizer(const json_value& value, place_name place, int depth = 0) {
    if (value.is_null()) return;
    const std::string type = type_of(value, place);
    if (type == "Sequence") {
      if (depth > 3) refuse_feature(place, "a Sequence within a Sequence within another one");
      std::size_t i = 0;
      for (const json_value& one : list(member(value, "pretokenizers"), place))
        pre_tokenizer(one, text({place, ".pretokenizers[", i++, "]"}), depth + 1);
      return;
    }
    if (made_.steps.size() >= 32) refuse_tokenizer(place, "has more than 32 steps");
    if (byte_level_) refuse_feature(place, text({type, " behind ByteLevel"}));
    if (type == "ByteLevel") {
      byte_level_ = true;
      if (flag(value, "add_prefix_space", true, place)) {
        made_.steps.emplace_back().what = split_step::kind::prefix_space;
        ++made_.prefixes;
      }
      if (flag(value, "use_regex", true, place))
        made_.steps.emplace_back().pattern =
            token_pattern(pcre2_pattern(gpt2_pattern, pattern_dialect::onig));
    } else if (type == "Digits") {
      split_step& step = made_.steps.emplace_back();
      step.pattern = token_pattern("\\p{N}");
      step.contiguous = !flag(value, "individual_digits", false, place);
    } else if (type == "Split") {
      split(value, place);
    } else {
      refuse_feature(place, type);
    }
  }
  void split(const json_value& value, place_name place) {
    split_step& step = made_.steps.emplace_back();
    const json_value& pattern = member(value, "pattern");
    const json_value& literal = member(pattern, "String");
    const std::string at = place + ".pattern";
    try {
      step.pattern =
          literal.is_null()
              ? token_pattern(pcre2_pattern(words(member(pattern, "Regex"), at), pattern_dialect::onig))
              : token_pattern(words(literal, at), true);
    } catch (error& e) {
      e.in_part(at);
      throw;
    }
    const std::string& behaviour = words(member(value, "behavior"), place + ".behavior");
    const bool invert = flag(value, "invert", false, place);
    if (behaviour == "Removed")
      (invert ? step.keep_gaps : step.keep_matches) = false;
    else if (behaviour != "Isolated")
      refuse_feature(place, text({"a Split that is ", behaviour}));
  }

  void added(const json_value& value) {
    if (value.is_null()) return;
    std::vector<added_token> first, second;
    std::map<std::string, std::uint32_t, std::less<>> seen, sought;
    std::vector<normal_form_memory> memory(made_.normalizers.size());
    for (const json_value& one : list(value, "added_tokens")) {
      const std::string place = text({"added_tokens[", first.size() + second.size(), "]"});
      added_token token{words(member(one, "content"), place + ".content"),
                        id(member(one, "id"), place + ".id"), flag(one, "special", false, place),
                        flag(one, "lstrip", false, place), flag(one, "rstrip", false, place)};
      if (flag(one, "single_word", false, place)) refuse_feature(place, "a single_word");
      if (token.text.empty()) refuse_tokenizer(place, "is empty");
      if (!seen.emplace(token.text, token.id).second) refuse_tokenizer(place, "is there twice");
      name_token(made_.model, token);
      if (flag(one, "normalized", !token.special, place)) {
        token.sought = made_.normalized(token.text, memory, bpe_tokenizer::max_normalized(token.text.size()));
        if (token.sought.empty()) refuse_tokenizer(place, "is empty once it is normalised");
        if (!sought.emplace(token.sought, token.id).second)
          refuse_tokenizer(place, "is there twice, once it is normalised");
        second.push_back(std::move(token));
      } else {
        first.push_back(std::move(token));
      }
    }
    made_.first = added_tokens(std::move(first));
    made_.second = added_tokens(std::move(second));
  }

  void post_processor(const json_value& value, place_name place, int depth = 0) {
    if (value.is_null()) return;
    const std::string type = type_of(value, place);
    if (type == "Sequence" && depth < 3) {
      for (const json_value& one : list(member(value, "processors"), place))
        post_processor(one, place + ".processors", depth + 1);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      for (const char* const name : {"cls", "sep"}) {
        const json_value& pair = list(member(value, name), place);
        if (pair.size() != 2) refuse_tokenizer(place, "has what is not a token and its id");
        (name[0] == 'c' ? made_.front : made_.back).push_back(known_id(pair[1], place));
      }
    } else if (type == "TemplateProcessing") {
      bool behind = false;
      for (const json_value& one : list(member(value, "single"), place + ".single")) {
        if (const json_value& special = member(one, "SpecialToken"); !special.is_null()) {
          const std::string& name = words(member(special, "id"), place + ".single");
          const json_value& meant = member(member(value, "special_tokens"), name.c_str());
          for (const json_value& number : list(member(meant, "ids"), place + ".special_tokens"))
            (behind ? made_.back : made_.front).push_back(known_id(number, place + ".special_tokens"));
        } else if (!std::exchange(behind, true)) {
          continue;
        } else {
          refuse_feature(place, "a template that repeats the text");
        }
      }
    } else if (type != "ByteLevel") {
      refuse_feature(place, type);
    }
  }

 public:
  /// Gives an added token a text in the model, if its id has none.
  static void name_token(bpe_model& model, const added_token& token) {
    if (!model.texts.has(token.id))
      model.texts.set(token.id, token.text);
    else if (model.texts[token.id] != token.text)
      throw error(errc::format,
                  {"the added token ", quoted(bytes_of(token.text), 40), " has the id ", token.id,
                   ", which is that of ", quoted(bytes_of(model.texts[token.id]), 40)});
  }

 private:
  bpe_tokenizer made_;
  bool byte_level_ = false;
};

}  // namespace penstock::inline v0_1::detail
