// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/state.hpp>

#include <penstock/base/flat_json.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>

#include <initializer_list>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE state::state() = default;
PENSTOCK_INLINE state::state(const state&) = default;
PENSTOCK_INLINE state::state(state&&) noexcept = default;
PENSTOCK_INLINE state& state::operator=(const state&) = default;
PENSTOCK_INLINE state& state::operator=(state&&) noexcept = default;
PENSTOCK_INLINE state::~state() = default;

PENSTOCK_INLINE void state::begin_epoch(std::uint64_t which) {
  epoch = which;
  step = pass = ordinal = rows = survivors = taken = given = dealt = bad = 0;
  held.clear();
  front.clear();
  packed.clear();
}

namespace detail {

// A checksum of a state's text that ignores the blanks between its tokens.
PENSTOCK_INLINE std::uint64_t state_check(std::string_view text) {
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

// Everything in a state before "check".
PENSTOCK_INLINE std::string state_body(const state& s) {
  std::string text = "{";
  const auto number = [&text](std::string_view key, std::uint64_t value) {
    append(text, {text.size() > 1 ? ", \"" : "\"", key, "\": \"", value, '"'});
  };
  const auto numbers = [&text](std::string_view key, const std::vector<std::uint64_t>& all) {
    append(text, {", \"", key, "\": ["});
    for (std::size_t i = 0; i < all.size(); ++i) append(text, {i == 0 ? "\"" : ",\"", all[i], '"'});
    text += ']';
  };
  for_each_state_number(s, number);
  text += ", \"plan\": [";
  for (std::size_t i = 0; i < s.plan.size(); ++i)
    append(text, {i == 0 ? "" : ", ", detail::json_quoted(s.plan[i])});
  text += ']';
  numbers("held", s.held);
  if (!s.front.empty()) numbers("front", s.front);
  if (!s.packed.empty()) numbers("packed", s.packed);
  text += ", ";
  if (!s.ranks.empty()) {
    text += "\"ranks\": [";
    for (std::size_t i = 0; i < s.ranks.size(); ++i)
      append(text, {i == 0 ? "" : ",\n", state_body(s.ranks[i]), "\"check\": \"0\"}"});
    text += "], ";
  }
  return text;
}

// Accepts exactly what `to_string` writes, apart from blanks between tokens.
class state_reader {
 public:
  explicit state_reader(std::string_view text)
      : text_(text),
        json_(text, {errc::state, "this is no state of a penstock run, or it was cut or edited", ""}) {}

  state read() {
    state s = object(0);
    json_.end("the end");
    return s;
  }

 private:
  state object(unsigned depth) {
    const std::size_t begin = json_.at();
    state s;
    json_.expect('{');
    bool first = true;
    for_each_state_number(s, [&](std::string_view key, std::uint64_t& value) {
      if (!first) json_.expect(',');
      first = false;
      json_.name(key);
      value = json_.quoted_number();
      if (key == "penstock_state" && value != state::current_version)
        throw error(errc::state, {"this state is of version ", value, " and this library reads version ",
                                  state::current_version, "; use the library that wrote it",
                                  value > state::current_version ? ", or a newer one" : ""});
    });
    json_.expect(',');
    json_.name("plan");
    json_.list([&] { s.plan.push_back(json_.string()); });
    json_.expect(',');
    json_.name("held");
    json_.list([&] { s.held.push_back(json_.quoted_number()); });
    json_.expect(',');
    if (json_.optional_name("front")) {
      json_.list([&] { s.front.push_back(json_.quoted_number()); });
      if (s.front.empty()) json_.fail("a number in \"front\"", json_.at());
      json_.expect(',');
    }
    if (json_.optional_name("packed")) {
      json_.list([&] { s.packed.push_back(json_.quoted_number()); });
      if (s.packed.size() != 2) json_.fail("two numbers in \"packed\"", json_.at());
      json_.expect(',');
    }
    if (depth == 0 && json_.optional_name("ranks")) {
      json_.list([&] { s.ranks.push_back(object(1)); });
      if (s.ranks.empty()) json_.fail("a state in \"ranks\"", json_.at());
      json_.expect(',');
    }
    const std::size_t end = json_.at();
    json_.name("check");
    const std::size_t check_at = json_.at();
    const std::uint64_t check = json_.quoted_number();
    json_.expect('}');
    if (depth == 0 && check != state_check(text_.substr(begin, end - begin)))
      json_.fail("the checksum of the text before it", check_at);
    return s;
  }

  std::string_view text_;
  json_reader json_;
};

}  // namespace detail

PENSTOCK_INLINE std::string to_string(const state& s) {
  const std::string body = detail::state_body(s);
  return detail::text({body, "\"check\": \"", detail::state_check(body), "\"}"});
}

PENSTOCK_INLINE state state_from_string(std::string_view text) { return detail::state_reader(text).read(); }

PENSTOCK_INLINE state merge(std::span<const state> all) {
  const auto refuse = [](std::initializer_list<detail::piece> why) {
    throw error(errc::state, {"these states cannot be merged: ", detail::text(why)});
  };
  if (all.empty()) refuse({"there is none"});
  const state& first = all.front();
  std::vector<const state*> by_rank(all.size(), nullptr);
  for (const state& s : all) {
    if (!s.ranks.empty()) refuse({"one is already merged"});
    if (s.dataset != first.dataset || s.sequence != first.sequence || s.random != first.random)
      refuse({"rank ", s.rank, " reads other data, or in another order, than rank ", first.rank});
    if (s.world != first.world || s.elastic != first.elastic)
      refuse({"rank ", s.rank, " is of ", s.world, " ranks, rank ", first.rank, " of ", first.world});
    if (s.epoch != first.epoch || s.step != first.step)
      refuse({"rank ", s.rank, " is at step ", s.step, " of epoch ", s.epoch, ", rank ", first.rank,
              " at step ", first.step, " of epoch ", first.epoch});
    if (s.rank >= s.world || s.world != all.size())
      refuse({"there are ", all.size(), ", and one is from rank ", s.rank, " of ", s.world});
    const state*& place = by_rank[static_cast<std::size_t>(s.rank)];
    if (place != nullptr) refuse({"two are from rank ", s.rank});
    place = &s;
  }
  state merged = *by_rank.front();
  if (all.size() == 1) return merged;
  if (merged.elastic != 0) {
    std::uint64_t bad = 0;  // each rank starts with the mean, rounded up
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
  merged.packed.clear();
  return merged;
}

}  // namespace penstock::inline v0_1
