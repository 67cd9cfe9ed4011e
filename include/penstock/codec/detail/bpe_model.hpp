// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/random.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

/// Byte-pair encoding of one word: pairs of tokens that are neighbours merge, the pair of the lowest rank
/// first, and of equal ranks the leftmost. Source: Sennrich, Haddow and Birch, "Neural machine translation of
/// rare words with subword units", ACL 2016; on bytes as in GPT-2 (Radford and others 2019).
namespace penstock::inline v0_1::detail {

/// No token. Tokens have ids below `max_tokens`.
inline constexpr std::uint32_t no_token = 0xffffffffu;
/// More than any vocabulary has, so that an id in a damaged file does not ask for gigabytes.
inline constexpr std::uint32_t max_tokens = 1u << 22;

/// Where a place is in a text; more than its size if it is elsewhere.
[[nodiscard]] inline std::size_t offset_in(std::string_view text, const char* place) noexcept {
  return reinterpret_cast<std::uintptr_t>(place) - reinterpret_cast<std::uintptr_t>(text.data());
}

/// The bytes of tokens, by id. Ids may have gaps.
class token_texts {
 public:
  void set(std::uint32_t id, std::string_view text) {
    if (id >= places_.size()) places_.resize(std::size_t{id} + 1);
    places_[id] = {static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(text.size()), true};
    bytes_.append(text);
  }
  [[nodiscard]] bool has(std::uint32_t id) const noexcept { return id < places_.size() && places_[id].there; }
  [[nodiscard]] std::string_view operator[](std::uint32_t id) const noexcept {
    return {bytes_.data() + places_[id].begin, places_[id].size};
  }
  /// One more than the highest id.
  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(places_.size()); }

 private:
  struct place {
    std::uint32_t begin = 0, size = 0;
    bool there = false;
  };
  std::string bytes_;
  std::vector<place> places_;
};

[[nodiscard]] inline std::uint64_t hash_of_text(std::string_view text) noexcept {
  std::uint64_t hash = text.size();
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), 8);
    hash = mix64(hash ^ word);
  }
  std::uint64_t last = 0;
  if (!text.empty()) std::memcpy(&last, text.data(), text.size());
  return mix64(hash ^ last);
}

/// Ids by text, in an open table of the ids alone: the texts are elsewhere.
class ids_by_text {
 public:
  ids_by_text() : slots_(64, no_token) {}

  [[nodiscard]] std::uint32_t find(std::string_view text, const token_texts& texts) const noexcept {
    for (std::size_t i = hash_of_text(text);; ++i) {
      const std::uint32_t id = slots_[i & (slots_.size() - 1)];
      if (id == no_token || texts[id] == text) return id;
    }
  }
  /// Puts a token in, whose text must be in `texts`; returns the token that has this text already, if one
  /// has.
  std::uint32_t put(std::uint32_t id, const token_texts& texts) {
    if (2 * ++count_ > slots_.size()) {
      std::vector<std::uint32_t> all(2 * slots_.size(), no_token);
      std::swap(all, slots_);
      for (const std::uint32_t one : all)
        if (one != no_token) free_slot(texts[one], texts) = one;
    }
    std::uint32_t& slot = free_slot(texts[id], texts);
    if (slot != no_token) return slot;
    slot = id;
    return no_token;
  }

 private:
  [[nodiscard]] std::uint32_t& free_slot(std::string_view text, const token_texts& texts) noexcept {
    for (std::size_t i = hash_of_text(text);; ++i) {
      std::uint32_t& slot = slots_[i & (slots_.size() - 1)];
      if (slot == no_token || texts[slot] == text) return slot;
    }
  }

  std::vector<std::uint32_t> slots_;
  std::size_t count_ = 0;
};

/// What pairs of tokens become: (rank, new token) in one number, so that the smallest one merges first.
class pair_merges {
 public:
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  pair_merges() : slots_(64) {}

  [[nodiscard]] std::uint64_t find(std::uint32_t left, std::uint32_t right) const noexcept {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t i = hash_of(key);; ++i) {
      const slot& one = slots_[i & (slots_.size() - 1)];
      if (one.key == key) return one.value;
      if (one.key == none) return none;
    }
  }
  /// A pair that is there already gets the new rank, as in `tokenizers`.
  void put(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t made) {
    if (5 * ++count_ > 3 * slots_.size()) {
      std::vector<slot> all(2 * slots_.size());
      std::swap(all, slots_);
      for (const slot& one : all)
        if (one.key != none) slot_of(one.key) = one;
    }
    slot_of(key_of(left, right)) = {key_of(left, right), std::uint64_t{rank} << 32 | made};
  }

 private:
  struct slot {
    std::uint64_t key = none, value = none;
  };
  [[nodiscard]] static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) noexcept {
    return std::uint64_t{left} << 32 | right;
  }
  [[nodiscard]] static std::size_t hash_of(std::uint64_t key) noexcept {
    const std::uint64_t mixed = key * 0x9e3779b97f4a7c15u;
    return mixed ^ (mixed >> 32);
  }
  [[nodiscard]] slot& slot_of(std::uint64_t key) noexcept {
    for (std::size_t i = hash_of(key);; ++i) {
      slot& one = slots_[i & (slots_.size() - 1)];
      if (one.key == key || one.key == none) return one;
    }
  }

  std::vector<slot> slots_;
  std::size_t count_ = 0;
};

/// A worker's memory for words that are long.
struct long_word {
  struct part {
    std::uint32_t token, before, after;
    std::uint64_t merge;  // of this token and the one after it
  };
  std::vector<part> parts;
  std::vector<std::uint64_t> heap;  // rank and part; some are out of date
};

/// A vocabulary and its merges.
struct bpe_model {
  token_texts texts;
  ids_by_text ids;
  pair_merges merges;
  std::array<std::uint32_t, 256> bytes{};  ///< the token of each byte, or `no_token`
  bool whole_words = false;                ///< a word that is a token is that token, whatever merges say

  /// Fills `bytes`, when all texts are there.
  void find_bytes() noexcept {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const char byte = static_cast<char>(i);
      bytes[i] = ids.find({&byte, 1}, texts);
    }
  }

  /// Writes the tokens of a word, at most as many as it has bytes, and returns how many. Throws
  /// `errc::format`
  /// for a byte without a token, with its offset in `text`, if the word is part of it.
  std::size_t encode(std::string_view word, std::string_view text, std::uint32_t* into,
                     long_word& memory) const {
    if (whole_words) {
      if (const std::uint32_t whole = ids.find(word, texts); whole != no_token) return *into = whole, 1;
    }
    for (std::size_t i = 0; i < word.size(); ++i) {
      into[i] = bytes[static_cast<unsigned char>(word[i])];
      if (into[i] == no_token) refuse_byte(word.substr(i), text);
    }
    return word.size() <= short_word ? merge_short(into, word.size()) : merge_long(into, word.size(), memory);
  }

 private:
  static constexpr std::size_t short_word = 48;  // where a search through all pairs takes longer than a heap

  [[noreturn, gnu::cold]] static void refuse_byte(std::string_view from, std::string_view text) {
    error e(errc::format,
            {"the vocabulary has no token for the byte ", static_cast<unsigned char>(from.front()),
             "; take a vocabulary that has all 256 bytes, as one that is trained with "
             "initial_alphabet=ByteLevel.alphabet()"});
    if (const std::size_t at = offset_in(text, from.data()); at < text.size()) e.at_offset(at);
    throw e;
  }

  std::size_t merge_short(std::uint32_t* tokens, std::size_t count) const noexcept {
    std::array<std::uint64_t, short_word> found;  // found[i]: what tokens i and i + 1 become
    for (std::size_t i = 0; i + 1 < count; ++i) found[i] = merges.find(tokens[i], tokens[i + 1]);
    while (count > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i + 1 < count; ++i)
        if (found[i] < found[best]) best = i;
      if (found[best] == pair_merges::none) break;
      tokens[best] = static_cast<std::uint32_t>(found[best]);
      --count;
      for (std::size_t i = best + 1; i < count; ++i) {
        tokens[i] = tokens[i + 1];
        found[i - 1] = found[i];
      }
      if (best + 1 < count) found[best] = merges.find(tokens[best], tokens[best + 1]);
      if (best > 0) found[best - 1] = merges.find(tokens[best - 1], tokens[best]);
    }
    return count;
  }

  std::size_t merge_long(std::uint32_t* tokens, std::size_t count, long_word& memory) const {
    auto& parts = memory.parts;
    auto& heap = memory.heap;
    constexpr auto none = static_cast<std::uint32_t>(-1);
    constexpr auto later = std::greater<>{};
    parts.resize(count);
    heap.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool last = i + 1 == count;
      parts[i] = {tokens[i], i == 0 ? none : i - 1, last ? none : i + 1,
                  last ? pair_merges::none : merges.find(tokens[i], tokens[i + 1])};
      if (parts[i].merge != pair_merges::none) heap.push_back(parts[i].merge >> 32 << 32 | i);
    }
    std::ranges::make_heap(heap, later);
    const auto look = [&](std::uint32_t i) {
      auto& one = parts[i];
      one.merge = one.after == none ? pair_merges::none : merges.find(one.token, parts[one.after].token);
      if (one.merge == pair_merges::none) return;
      heap.push_back(one.merge >> 32 << 32 | i);
      std::ranges::push_heap(heap, later);
    };
    while (!heap.empty()) {
      std::ranges::pop_heap(heap, later);
      const std::uint64_t next = heap.back();
      heap.pop_back();
      const auto i = static_cast<std::uint32_t>(next);
      auto& one = parts[i];
      // The pair has merged with a neighbour since.
      if (one.merge == pair_merges::none || one.merge >> 32 != next >> 32) continue;
      one.token = static_cast<std::uint32_t>(one.merge);
      auto& gone = parts[one.after];
      gone.merge = pair_merges::none;
      one.after = gone.after;
      if (one.after != none) parts[one.after].before = i;
      look(i);
      if (one.before != none) look(one.before);
    }
    std::size_t made = 0;
    for (std::uint32_t i = 0; i != none; i = parts[i].after) tokens[made++] = parts[i].token;
    return made;
  }
};

}  // namespace penstock::inline v0_1::detail
