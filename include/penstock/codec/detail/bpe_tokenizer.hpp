// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/bpe_model.hpp>
#include <penstock/codec/detail/shared_model.hpp>
#include <penstock/codec/detail/token_pattern.hpp>
#include <penstock/codec/tokenizer_options.hpp>
#include <penstock/codec/unicode_normalizer.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// A token that is looked for in the text, before anything else is done with it.
struct added_token {
  std::string text;
  std::uint32_t id = 0;
  bool special = false, strips_left = false, strips_right = false;
  std::string sought = text;  ///< what stands for it in a text that has been normalised
};

/// Unicode's White_Space.
[[nodiscard]] constexpr bool is_white_space(std::uint32_t c) noexcept {
  return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}
/// The length of the white space that a text, which is UTF-8, begins with.
[[nodiscard]] inline std::size_t leading_space(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[i + k]); };
    const std::size_t size = byte(0) < 0x80 ? 1 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
    const std::uint32_t code = size == 1   ? byte(0)
                               : size == 2 ? (byte(0) & 0x1fu) << 6 | (byte(1) & 0x3fu)
                               : size == 3
                                   ? (byte(0) & 0xfu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu)
                                   : 0;
    if (!is_white_space(code)) return i;
    i += size;
  }
  return text.size();
}
/// Where the white space begins that a text ends with.
[[nodiscard]] inline std::size_t trailing_space(std::string_view text) noexcept {
  std::size_t begin = text.size();
  for (std::size_t i = text.size(); i > 0;) {
    --i;
    if ((static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) continue;
    if (leading_space(text.substr(i, begin - i)) != begin - i) break;
    begin = i;
  }
  return begin;
}

/// Finds added tokens in text: the leftmost one, and of those that begin there the longest.
class added_tokens {
 public:
  explicit added_tokens(std::vector<added_token> all = {}) : all_(std::move(all)) {
    std::ranges::sort(all_, {}, &added_token::sought);
    for (const added_token& one : all_) {
      const auto first = static_cast<unsigned char>(one.sought.front());
      firsts_ += begins_[first] ? 0u : 1u;
      begins_[first] = true;
    }
  }
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] const added_token* named(std::string_view text) const noexcept {
    const auto at = std::ranges::find(all_, text, &added_token::text);
    return at != all_.end() ? &*at : nullptr;
  }
  /// The next one at or behind `at`, which becomes its place; null if there is none.
  [[nodiscard]] const added_token* find(std::string_view text, std::size_t& at) const noexcept {
    for (; at < text.size(); ++at) {
      if (firsts_ == 1) {
        const void* const next = std::memchr(text.data() + at, all_.front().sought.front(), text.size() - at);
        if (next == nullptr) return nullptr;
        at = static_cast<std::size_t>(static_cast<const char*>(next) - text.data());
      } else if (!begins_[static_cast<unsigned char>(text[at])]) {
        continue;
      }
      if (const added_token* const one = longest(text.substr(at))) return one;
    }
    return nullptr;
  }

 private:
  /// The longest one that a text begins with: narrows the sorted list byte by byte.
  [[nodiscard]] const added_token* longest(std::string_view text) const noexcept {
    const added_token* found = nullptr;
    auto first = all_.begin(), last = all_.end();
    for (std::size_t depth = 0; depth < text.size() && first != last; ++depth) {
      const auto byte = [depth](const added_token& one) {
        return one.sought.size() > depth ? static_cast<unsigned char>(one.sought[depth]) : -1;
      };
      const int wanted = static_cast<unsigned char>(text[depth]);
      first = std::ranges::lower_bound(first, last, wanted, {}, byte);
      last = std::ranges::upper_bound(first, last, wanted, {}, byte);
      if (first != last && first->sought.size() == depth + 1) found = &*first;
    }
    return found;
  }

  std::vector<added_token> all_;
  std::array<bool, 256> begins_{};
  std::size_t firsts_ = 0;
};

/// A step of changing a text, before it is split.
struct normalize_step {
  const normal_form* form = nullptr;  ///< null: `from` becomes `to`, or if it is empty, `to` is put before
  std::string from, to;

  /// The text itself, or in `memory`. Throws `errc::limit` for more than `most` bytes.
  [[nodiscard]] std::string_view apply(std::string_view text, normal_form_memory& memory,
                                       std::size_t most) const {
    if (form != nullptr) {
      text = form->apply(text, memory);
      if (text.size() > most) refuse();
      return text;
    }
    if (text.empty() || (!from.empty() && text.find(from) == text.npos)) return text;
    memory.text.clear();
    if (from.empty()) memory.text.append(bytes_of(to));
    for (std::size_t at = 0; !from.empty() && (at = text.find(from)) != text.npos;) {
      memory.text.append(bytes_of(text.substr(0, at)));
      memory.text.append(bytes_of(to));
      text.remove_prefix(at + from.size());
      if (memory.text.size() > most) refuse();
    }
    memory.text.append(bytes_of(text));
    if (memory.text.size() > most) refuse();
    return text_of(memory.text.view());
  }
  [[noreturn, gnu::cold]] static void refuse() {
    throw error(errc::limit,
                "the tokenizer's normalizer makes too many bytes of a text for bpe: more than "
                "2 GiB, or than 64 times as many as it has");
  }
};

/// A step of splitting text into words.
struct split_step {
  enum class kind { pattern, prefix_space };
  kind what = kind::pattern;
  token_pattern pattern;
  bool keep_matches = true, keep_gaps = true;
  bool contiguous = false;  ///< matches one behind the other are one word
};

/// The longest text that `bpe` takes.
inline constexpr std::size_t max_text = 0x7fffffff;

/// All that makes tokens of a text. Immutable, and shared by the workers.
struct bpe_tokenizer {
  bpe_model model;
  std::vector<normalize_step> normalizers;
  std::vector<split_step> steps;
  std::size_t prefixes = 0;                ///< how many of them put a space before a piece
  added_tokens first, second;              ///< `second` is looked for in what `first` has left, normalised
  std::vector<std::uint32_t> front, back;  ///< around each text, if asked for
  std::string not_around;                  ///< why it cannot be asked for

  /// How many bytes the normalizers may make of a text of so many.
  [[nodiscard]] static std::size_t max_normalized(std::size_t size) noexcept {
    return std::min(64 * size + 4096, max_text);
  }
  /// A text as the normalizers make it: itself, or in `memory`, one for each of them.
  [[nodiscard]] std::string_view normalized(std::string_view text, std::vector<normal_form_memory>& memory,
                                            std::size_t most) const {
    for (std::size_t i = 0; i < normalizers.size(); ++i) text = normalizers[i].apply(text, memory[i], most);
    return text;
  }
};

/// Words that a worker has seen, with their tokens: a table where a word has one place.
class word_cache {
 public:
  static constexpr std::size_t max_bytes = 24, max_words = std::size_t{1} << 24;

  struct word {
    std::uint64_t text[3];
    std::uint32_t size;
  };
  struct alignas(64) entry {
    std::uint64_t text[3];
    std::uint16_t size;  // 0: none
    std::uint16_t count;
    std::uint32_t tokens[9];
  };
  static_assert(sizeof(entry) == 64, "penstock: an entry of the cache of words must be a cache line");

  void open(std::size_t words) {
    const std::size_t count = std::bit_ceil(std::min(std::max<std::size_t>(words, 1), max_words));
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(count));
    memory_.resize_for_overwrite(count * sizeof(entry));
    std::memset(memory_.data(), 0, memory_.size());
  }
  /// A word of at most `max_bytes`; `end` is that of the text around it.
  [[nodiscard, gnu::always_inline]] static word key(std::string_view text, const char* end) noexcept {
    word made{{0, 0, 0}, static_cast<std::uint32_t>(text.size())};
    if (text.size() <= 8 && end - text.data() >= 8) {
      std::memcpy(made.text, text.data(), 8);
      const auto unused = static_cast<unsigned>(8 * (8 - text.size()));
      if constexpr (std::endian::native == std::endian::little)
        made.text[0] = made.text[0] << unused >> unused;
      else
        made.text[0] = made.text[0] >> unused << unused;
    } else {
      std::memcpy(made.text, text.data(), text.size());
    }
    return made;
  }
  [[nodiscard, gnu::always_inline]] entry& place(const word& one) const noexcept {
    std::uint64_t hash = (one.text[0] + one.size) * 0x9e3779b97f4a7c15u;
    if (one.size > 8) {
      hash ^= (one.text[1] + (hash >> 32)) * 0xbf58476d1ce4e5b9u;
      hash ^= (one.text[2] + (hash >> 32)) * 0x94d049bb133111ebu;
    }
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
    return reinterpret_cast<entry*>(
        const_cast<std::byte*>(memory_.data()))[shift_ == 64 ? 0 : hash >> shift_];
  }
  [[nodiscard, gnu::always_inline]] static bool same(const entry& a, const word& b) noexcept {
    return ((a.text[0] ^ b.text[0]) | (a.text[1] ^ b.text[1]) | (a.text[2] ^ b.text[2]) |
            (a.size ^ b.size)) == 0;
  }

 private:
  buffer memory_;
  unsigned shift_ = 64;
};

/// A worker's memory for `bpe`.
class bpe_worker {
 public:
  /// The tokens of a text that is UTF-8; valid until the next call.
  std::span<std::uint32_t> encode(const shared_model<bpe_tokenizer>& with, std::string_view text,
                                  special_tokens special, bool around, std::size_t cached_words) {
    if (!(with == tokenizer_) || cached_words != cached_words_) begin(with, cached_words);
    if (text.size() > max_text)
      throw error(errc::limit, "a text of more than 2 GiB has too many bytes for bpe; cut it into documents");
    // Each token has a byte of the text, or of a space that is put before a piece of it.
    most_ = (1 + tokenizer_->prefixes) * text.size() + tokenizer_->front.size() + tokenizer_->back.size() + 1;
    tokens_.resize_for_overwrite(most_ * sizeof(std::uint32_t));
    begin_ = end_ = reinterpret_cast<std::uint32_t*>(tokens_.data());
    text_ = text;
    normalized_left_ = bpe_tokenizer::max_normalized(text.size());
    if (around) end_ = std::ranges::copy(tokenizer_->front, end_).out;
    parts(tokenizer_->first, text, special, [&](std::string_view rest) {
      if (!tokenizer_->normalizers.empty()) rest = normalized(rest);
      parts(tokenizer_->second, rest, special, [&](std::string_view piece) { split(0, piece); });
    });
    if (around) end_ = std::ranges::copy(tokenizer_->back, end_).out;
    return {begin_, end_};
  }

  buffer replaced;  ///< for a text that had to be changed
  buffer narrowed;  ///< for tokens of another type

 private:
  [[gnu::cold]] void begin(const shared_model<bpe_tokenizer>& with, std::size_t cached_words) {
    tokenizer_ = {};
    words_.open(cached_words);
    matches_ = {};
    prefixed_.clear();
    prefixed_.resize(with->steps.size());
    normalized_.clear();
    normalized_.resize(with->normalizers.size());
    cached_words_ = cached_words;
    tokenizer_ = with;
  }

  /// A part of the text as the normalizers make it, with room for its tokens.
  [[nodiscard]] std::string_view normalized(std::string_view part) {
    const std::string_view made = tokenizer_->normalized(part, normalized_, normalized_left_);
    normalized_left_ -= std::min(normalized_left_, made.size());
    if (made.size() > part.size()) grow((1 + tokenizer_->prefixes) * (made.size() - part.size()));
    return made;
  }
  void grow(std::size_t more) {
    most_ += more;
    if (most_ * sizeof(std::uint32_t) <= tokens_.capacity()) return;
    buffer larger(2 * most_ * sizeof(std::uint32_t));
    const auto count = static_cast<std::size_t>(end_ - begin_);
    if (count != 0) std::memcpy(larger.data(), begin_, count * sizeof(std::uint32_t));
    tokens_ = std::move(larger);
    begin_ = reinterpret_cast<std::uint32_t*>(tokens_.data());
    end_ = begin_ + count;
  }

  /// Takes added tokens out of a text; what is between them goes to `use`.
  template <class Use>
  void parts(const added_tokens& added, std::string_view text, special_tokens special, const Use& use) {
    if (text.empty()) return;  // even if each piece gets a space before it
    if (added.empty()) return use(text);
    std::size_t done = 0, at = 0;
    while (const added_token* const one = added.find(text, at)) {
      const std::size_t behind = at + one->sought.size();
      if (one->special && special != special_tokens::recognise) {
        if (special == special_tokens::refuse) refuse_special(*one, text.data() + at);
        at = behind;
        continue;
      }
      const std::size_t begin = one->strips_left ? std::max(done, trailing_space(text.substr(0, at))) : at;
      if (done < begin) use(text.substr(done, begin - done));
      *end_++ = one->id;
      done = behind + (one->strips_right ? leading_space(text.substr(behind)) : 0);
      at = behind;  // so a token may begin in the space that this one strips, as in `tokenizers`
    }
    if (done < text.size()) use(text.substr(done));
  }
  [[noreturn, gnu::cold]] void refuse_special(const added_token& one, const char* at) const {
    error e(errc::format, {"the text has the special token ", quoted(bytes_of(one.text), 40),
                           " as words; write {.special = special_tokens::text} to take it for text, or "
                           "recognise to take it for the token"});
    if (const std::size_t place = offset_in(text_, at); place < text_.size()) e.at_offset(place);
    throw e;
  }

  /// Does the steps of splitting from this one on. NOLINTNEXTLINE(misc-no-recursion): as deep as there are
  /// steps.
  void split(std::size_t step, std::string_view piece) {
    if (step == tokenizer_->steps.size()) return encode_word(piece, piece.data() + piece.size());
    const split_step& how = tokenizer_->steps[step];
    if (how.what == split_step::kind::prefix_space) {
      if (piece.starts_with(' ')) return split(step + 1, piece);
      buffer& with_space = prefixed_[step];
      with_space.resize_for_overwrite(piece.size() + 1);
      with_space.data()[0] = std::byte{' '};
      std::memcpy(with_space.data() + 1, piece.data(), piece.size());
      return split(step + 1, text_of(with_space.view()));
    }
    const bool last = step + 1 == tokenizer_->steps.size();
    const char* const end = piece.data() + piece.size();
    const auto next = [&](std::size_t from, std::size_t to) {
      const std::string_view word = piece.substr(from, to - from);
      if (last)
        encode_word(word, end);
      else
        split(step + 1, word);
    };
    std::size_t done = 0, at = 0;
    token_pattern::match found;
    while (at < piece.size() && how.pattern.find(piece, at, found, matches_)) {
      if (how.keep_gaps && done < found.begin) next(done, found.begin);
      if (found.begin == found.end) {  // no word, but a cut, as (?=[A-Z]) makes them
        done = found.begin;
        at = found.end + 1;
        while (at < piece.size() && (static_cast<unsigned char>(piece[at]) & 0xc0) == 0x80) ++at;
        continue;
      }
      if (how.contiguous) {
        token_pattern::match more;
        while (found.end < piece.size() && how.pattern.find(piece, found.end, more, matches_) &&
               more.begin == found.end && more.end > more.begin)
          found.end = more.end;
      }
      if (how.keep_matches) next(found.begin, found.end);
      done = at = found.end;
    }
    if (how.keep_gaps && done < piece.size()) next(done, piece.size());
  }

  /// Appends the tokens of a word; `end` is that of the text around it.
  void encode_word(std::string_view word, const char* end) {
    if (word.size() > word_cache::max_bytes || cached_words_ == 0) {
      end_ += tokenizer_->model.encode(word, text_, end_, long_word_);
      return;
    }
    const word_cache::word key = word_cache::key(word, end);
    word_cache::entry& known = words_.place(key);
    if (!word_cache::same(known, key)) {
      const std::size_t count = tokenizer_->model.encode(word, text_, end_, long_word_);
      if (count <= std::size(known.tokens)) {
        std::ranges::copy(key.text, known.text);
        known.size = static_cast<std::uint16_t>(key.size);
        known.count = static_cast<std::uint16_t>(count);
        std::memcpy(known.tokens, end_, count * sizeof(std::uint32_t));
      }
      end_ += count;
      return;
    }
    std::uint32_t* const into = end_;
    end_ += known.count;
    into[0] = known.tokens[0];
    for (std::uint32_t i = 1; i < known.count; ++i) into[i] = known.tokens[i];
  }

  shared_model<bpe_tokenizer> tokenizer_;
  std::size_t cached_words_ = 0;
  std::string_view text_;
  buffer tokens_;
  std::size_t most_ = 0;  ///< tokens that may come
  std::size_t normalized_left_ =
      0;  ///< bytes that the normalizers may make of the parts of the text that are left
  std::uint32_t *begin_ = nullptr, *end_ = nullptr;
  word_cache words_;
  long_word long_word_;
  pattern_memory matches_;
  std::vector<buffer> prefixed_;
  std::vector<normal_form_memory> normalized_;
};

}  // namespace penstock::inline v0_1::detail
