// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Where a run stands: what `run.state()` gives and `plan.open(state)` takes. Small, readable, the same on
/// every machine.
///
/// Written as one JSON object whose numbers are strings, so that no reader rounds them; docs/state.md is its
/// schema. `dataset` and `sequence` are fingerprints of the data and of what determines the order; workers,
/// prefetch, depth, memory and device are no part of it.
///
/// Where the plan is elastic, the state of any rank serves every rank of any world; else `merge` puts those
/// of all ranks into one.
struct state {
  static constexpr std::uint64_t current_version = 1;

  std::uint64_t version = current_version;
  std::uint64_t dataset = 0;
  std::uint64_t sequence = 0;
  std::uint64_t world = 1, rank = 0;  ///< at the time; they matter where the plan is not elastic
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;              ///< batches delivered in this epoch
  std::uint64_t pass = 0;              ///< with `steps`: passes over the data in this epoch
  std::uint64_t ordinal = 0;           ///< chunks: samples of this rank that are done
  std::uint64_t rows = 0;              ///< chunks: rows made of the samples after them that are done too
  std::uint64_t survivors = 0;         ///< chunks: rows that came out of the deciders in this pass
  std::uint64_t taken = 0, given = 0;  ///< `shuffle_buffer`: ordinals that went in and came out
  std::uint64_t dealt = 0;             ///< rows of this epoch that were dealt, to all ranks together
  std::uint64_t elastic = 0;           ///< 1: any rank of any world may go on from here
  std::uint64_t bad = 0;               ///< `bad_samples`: those of this rank in this epoch
  std::vector<std::uint64_t> held;     ///< `shuffle_buffer`: ordinals in it
  std::vector<std::uint64_t> front;    ///< forward sources: where the source and the orders on it stand
  std::string plan;                    ///< the data and the stages that determine the sequence, for messages
  std::vector<state> ranks;            ///< of a merged state: those of ranks 0, 1, ...

  friend bool operator==(const state&, const state&) = default;
};

namespace detail {

template <class S, class F>
void for_each_state_number(S& s, F f) {
  f("penstock_state", s.version);
  f("dataset", s.dataset);
  f("sequence", s.sequence);
  f("world", s.world);
  f("rank", s.rank);
  f("epoch", s.epoch);
  f("step", s.step);
  f("pass", s.pass);
  f("ordinal", s.ordinal);
  f("rows", s.rows);
  f("survivors", s.survivors);
  f("taken", s.taken);
  f("given", s.given);
  f("dealt", s.dealt);
  f("bad", s.bad);
  f("elastic", s.elastic);
}

/// A text as a JSON string.
template <class = void>
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      append(out, {"\\u00", "0123456789abcdef"[c >> 4 & 15], "0123456789abcdef"[c & 15]});
    else
      out += c;
  }
  out += '"';
}

/// A sum over a state's text, whatever blanks stand between its tokens.
template <class = void>
[[nodiscard]] std::uint64_t state_check(std::string_view text) {
  std::string tokens;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside && c == '\\' && i + 1 < text.size())
      tokens.append({c, text[++i]});
    else if (inside || (c != ' ' && c != '\n' && c != '\t' && c != '\r'))
      tokens += c;
    if (c == '"') inside = !inside;
  }
  return fingerprint().add(tokens).value();
}

/// What stands before "check": all of a state.
template <class = void>
[[nodiscard]] std::string state_body(const state& s) {
  std::string text = "{";
  for_each_state_number(s, [&](std::string_view key, const std::uint64_t& value) {
    append(text, {text.size() > 1 ? ", " : "", '"', key, "\": \"", value, '"'});
  });
  text += ", \"plan\": ";
  append_quoted(text, s.plan);
  text += ", \"held\": [";
  for (std::size_t i = 0; i < s.held.size(); ++i) append(text, {i == 0 ? "\"" : ",\"", s.held[i], '"'});
  text += "], ";
  if (!s.front.empty()) {
    text += "\"front\": [";
    for (std::size_t i = 0; i < s.front.size(); ++i) append(text, {i == 0 ? "\"" : ",\"", s.front[i], '"'});
    text += "], ";
  }
  if (!s.ranks.empty()) {
    text += "\"ranks\": [";
    for (std::size_t i = 0; i < s.ranks.size(); ++i)
      append(text, {i == 0 ? "" : ",\n", state_body(s.ranks[i]), "\"check\": \"0\"}"});
    text += "], ";
  }
  return text;
}

/// A strict reader of exactly what `to_string` writes, blanks between tokens aside.
class state_reader {
 public:
  explicit state_reader(std::string_view text) : text_(text) {}

  state read() {
    state s = object(0);
    blanks();
    if (at_ != text_.size()) fail("the end");
    return s;
  }

 private:
  state object(unsigned depth) {
    const std::size_t begin = (blanks(), at_);
    state s;
    expect('{');
    bool first = true;
    for_each_state_number(s, [&](std::string_view key, std::uint64_t& value) {
      if (!first) expect(',');
      first = false;
      name(key);
      value = number();
      if (key == "penstock_state" && value > state::current_version)
        throw error(errc::state, {"this state is of version ", value, " and this library reads up to ",
                                  state::current_version, "; use the library that wrote it, or a newer one"});
      if (key == "penstock_state" && value == 0) fail("a version of at least 1");
    });
    expect(',');
    name("plan");
    s.plan = quoted();
    expect(',');
    name("held");
    list([&] { s.held.push_back(number()); });
    expect(',');
    if (is_name("front")) {
      name("front");
      list([&] { s.front.push_back(number()); });
      if (s.front.empty()) fail("a number in \"front\"");
      expect(',');
    }
    if (depth == 0 && is_name("ranks")) {
      name("ranks");
      list([&] { s.ranks.push_back(object(1)); });
      if (s.ranks.empty()) fail("a state in \"ranks\"");
      expect(',');
    }
    const std::size_t end = (blanks(), at_);
    name("check");
    const std::size_t check_at = (blanks(), at_);
    const std::uint64_t check = number();
    expect('}');
    if (depth == 0 && check != state_check(text_.substr(begin, end - begin))) {
      at_ = check_at;
      fail("the number that goes with what stands before it");
    }
    return s;
  }
  template <class Read>
  void list(Read read_one) {
    expect('[');
    if (!peek(']')) {
      read_one();
      while (!peek(']')) {
        expect(',');
        read_one();
      }
    }
    expect(']');
  }
  void blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  [[nodiscard]] bool peek(char c) {
    blanks();
    return at_ < text_.size() && text_[at_] == c;
  }
  void expect(char c) {
    if (!peek(c)) fail(std::string("'") + c + "'");
    ++at_;
  }
  void name(std::string_view key) {
    expect('"');
    if (text_.substr(at_, key.size()) != key) fail("the key \"" + std::string(key) + "\"");
    at_ += key.size();
    if (at_ >= text_.size() || text_[at_] != '"') fail("the key \"" + std::string(key) + "\"");
    ++at_;
    expect(':');
  }
  [[nodiscard]] bool is_name(std::string_view key) {
    return peek('"') && text_.substr(at_ + 1, key.size()) == key;
  }
  std::string quoted() {
    expect('"');
    std::string value;
    while (at_ < text_.size() && text_[at_] != '"' && static_cast<unsigned char>(text_[at_]) >= 0x20) {
      if (text_[at_] != '\\') {
        value += text_[at_++];
      } else if (text_.substr(at_ + 1, 1) == "\"" || text_.substr(at_ + 1, 1) == "\\") {
        value += text_[at_ + 1];
        at_ += 2;
      } else {
        unsigned code = 0;
        const std::string_view escape = text_.substr(at_, 6);
        const char* const end = escape.data() + escape.size();
        if (!escape.starts_with("\\u00") || std::from_chars(escape.data() + 4, end, code, 16).ptr != end ||
            escape.size() != 6 || code >= 0x20)
          fail("a character, or \\\", \\\\ or \\u00XX");
        value += static_cast<char>(code);
        at_ += 6;
      }
    }
    expect('"');
    return value;
  }
  std::uint64_t number() {
    expect('"');
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (problem != std::errc() || end == text_.data() + text_.size() || *end != '"')
      fail("a number of 64 bits as a string");
    at_ = static_cast<std::size_t>(end - text_.data()) + 1;
    return value;
  }
  [[noreturn]] void fail(const std::string& wanted) const {
    throw error(errc::state,
                {"this is no state of a penstock run, or it was cut or edited: expected ", wanted})
        .at_offset(at_);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace detail

/// The state as JSON, on one line where it is not a merged one.
template <class = void>
[[nodiscard]] std::string to_string(const state& s) {
  const std::string body = detail::state_body(s);
  return detail::text({body, "\"check\": \"", detail::state_check(body), "\"}"});
}

/// Reads what `to_string` wrote; anything else is `errc::state` with the offset, and so is a state of a newer
/// version.
template <class = void>
[[nodiscard]] state state_from_string(std::string_view text) {
  return detail::state_reader(text).read();
}

/// The states of all ranks of a job, each after the same step, as one that every rank may open: of an elastic
/// plan that of rank 0, with the mean of all their bad samples; else all of them.
///
/// Throws `error(errc::state)` where they are not of one job and one step, where two are of the same rank, or
/// where one is missing.
template <class = void>
[[nodiscard]] state merge(std::span<const state> all) {
  const auto refuse = [](std::initializer_list<detail::piece> why) {
    throw error(errc::state, {"these states cannot be merged: ", detail::text(why)});
  };
  if (all.empty()) refuse({"there is none"});
  const state& first = all.front();
  std::vector<const state*> by_rank(all.size(), nullptr);
  for (const state& s : all) {
    if (!s.ranks.empty()) refuse({"one is merged already"});
    if (s.dataset != first.dataset || s.sequence != first.sequence)
      refuse({"rank ", s.rank, " reads other data, or in another order, than rank ", first.rank});
    if (s.world != first.world || s.elastic != first.elastic)
      refuse({"rank ", s.rank, " is of ", s.world, " ranks, rank ", first.rank, " of ", first.world});
    if (s.epoch != first.epoch || s.step != first.step)
      refuse({"rank ", s.rank, " is at step ", s.step, " of epoch ", s.epoch, ", rank ", first.rank,
              " at step ", first.step, " of epoch ", first.epoch});
    if (s.rank >= s.world || s.world != all.size())
      refuse({"there are ", all.size(), ", and one is of rank ", s.rank, " of ", s.world});
    const state*& place = by_rank[static_cast<std::size_t>(s.rank)];
    if (place != nullptr) refuse({"two are of rank ", s.rank});
    place = &s;
  }
  state merged = *by_rank.front();
  if (all.size() == 1) return merged;
  if (merged.elastic != 0) {
    std::uint64_t bad = 0;  // each rank begins with the mean, rounded up
    for (const state& s : all) bad += s.bad;
    merged.bad = bad / merged.world + (bad % merged.world != 0 ? 1 : 0);
    return merged;
  }
  for (const state* const s : by_rank) {
    merged.ranks.push_back(*s);
    merged.ranks.back().plan.clear();
  }
  merged.held.clear();
  merged.front.clear();
  return merged;
}

}  // namespace penstock::inline v0_1
