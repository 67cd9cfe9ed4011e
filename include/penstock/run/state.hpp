// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Where a run stands: what `run.state()` gives and `plan.open(state)` takes. Small, readable, the same on
/// every machine.
///
/// Written as one flat JSON object whose numbers are strings, so that no reader rounds them. `dataset` and
/// `sequence` are fingerprints of the data and of what determines the order; workers, prefetch, depth, memory
/// and device are no part of it.
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
  std::uint64_t bad = 0;               ///< `bad_samples`: those of this rank in this epoch
  std::vector<std::uint64_t> held;     ///< `shuffle_buffer`: ordinals in it

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
  f("bad", s.bad);
}

/// A strict reader of exactly what `to_string` writes, blanks between tokens aside.
class state_reader {
 public:
  explicit state_reader(std::string_view text) : text_(text) {}

  state read() {
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
    name("held");
    expect('[');
    if (!peek(']')) {
      s.held.push_back(number());
      while (!peek(']')) {
        expect(',');
        s.held.push_back(number());
      }
    }
    expect(']');
    expect('}');
    blanks();
    if (at_ != text_.size()) fail("the end");
    return s;
  }

 private:
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

/// The state as one line of JSON.
template <class = void>
[[nodiscard]] std::string to_string(const state& s) {
  std::string text = "{";
  detail::for_each_state_number(s, [&](std::string_view key, const std::uint64_t& value) {
    if (text.size() > 1) text += ", ";
    text.append("\"").append(key).append("\": \"").append(std::to_string(value)).append("\"");
  });
  text += ", \"held\": [";
  for (std::size_t i = 0; i < s.held.size(); ++i)
    text.append(i == 0 ? "\"" : ",\"").append(std::to_string(s.held[i])).append("\"");
  return text + "]}";
}

/// Reads what `to_string` wrote; anything else is `errc::state` with the offset, and so is a state of a newer
/// version.
template <class = void>
[[nodiscard]] state state_from_string(std::string_view text) {
  return detail::state_reader(text).read();
}

}  // namespace penstock::inline v0_1
