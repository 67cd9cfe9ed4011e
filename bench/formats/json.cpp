// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows 26v and 26w: one value, and four, of lines of JSON as chats are kept in, 2 KB with four messages, a
// text and labels: json_field and json_fields, which are simdjson, against nlohmann's parser with a handler
// that keeps the same values and builds no document. In memory, one thread.

#include "support/harness.hpp"

#include <penstock/codec/json_field.hpp>
#include <penstock/core/name.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/record.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace {

/// Words, with a line break or a quote in some of them, as escapes.
std::string words(ps::rng& random, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    const std::uint64_t n = random.below(20);
    text += n == 0 ? "\\n" : n == 1 ? "\\\"so\\\" " : n == 2 ? "na\xc3\xafve " : "some words ";
  }
  return text;
}

std::vector<std::string> chat_lines(std::size_t count) {
  ps::rng random(26, 0, 0);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < count; ++i) {
    std::string line = R"({"id": "chat-)" + std::to_string(i) + R"(", "messages": [)";
    for (int k = 0; k < 4; ++k)
      line += std::string(k == 0 ? "" : ", ") + R"({"role": ")" + (k % 2 == 0 ? "user" : "assistant") +
              R"(", "content": ")" + words(random, 300) + "\"}";
    line += R"(], "label": )" + std::to_string(i % 10) + R"(, "score": )" +
            std::to_string(random.below(1000)) + R"(.25, "text": ")" + words(random, 500) +
            R"(", "tags": ["a", "b", "c"], "source": {"site": "x"}})";
    lines.push_back(std::move(line));
  }
  return lines;
}

/// Keeps texts and numbers of some keys of the outermost object.
template <std::size_t N>
class kept_values {
 public:
  explicit kept_values(const std::array<std::string_view, N>& keys) : keys_(keys) {}

  std::array<std::string, N> texts;
  std::array<double, N> numbers{};

  bool null() { return take(); }
  bool boolean(bool) { return take(); }
  bool number_integer(std::int64_t n) { return number(static_cast<double>(n)); }
  bool number_unsigned(std::uint64_t n) { return number(static_cast<double>(n)); }
  bool number_float(double n, const std::string&) { return number(n); }
  bool string(std::string& text) {
    if (next_ != N) texts[next_] = text;
    return take();
  }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool start_object(std::size_t) { return open(); }
  bool start_array(std::size_t) { return open(); }
  bool end_object() { return --depth_, true; }
  bool end_array() { return --depth_, true; }
  bool key(std::string& name) {
    next_ = N;
    if (depth_ == 1)
      for (std::size_t i = 0; i < N; ++i)
        if (keys_[i] == name) next_ = i;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) {
    throw std::runtime_error(e.what());
  }

 private:
  bool take() { return next_ = N, true; }
  bool open() { return ++depth_, take(); }
  bool number(double n) {
    if (next_ != N) numbers[next_] = n;
    return take();
  }

  std::array<std::string_view, N> keys_;
  std::size_t depth_ = 0, next_ = N;
};

void measure(const bench::options& o) {
  const std::vector<std::string> lines = chat_lines(o.quick ? 200 : 4'000);
  const bench::row one{"26v", "JSON lines of 2 KB, one text / nlohmann's parser without documents", 2};
  const bench::row four{"26w", "JSON lines of 2 KB, four values / nlohmann's parser without documents", 2};
  if (o.wants(one.id)) {
    using text = ps::json_field<"text", std::string_view>;
    text::scratch scratch;
    const auto ours = [&] {
      std::uint64_t sum = 0;
      for (const std::string& line : lines) sum += text{}.decode(line, scratch).size();
      return sum;
    };
    const auto reference = [&] {
      std::uint64_t sum = 0;
      for (const std::string& line : lines) {
        kept_values<1> found({"text"});
        nlohmann::json::sax_parse(line, &found);
        sum += found.texts[0].size();
      }
      return sum;
    };
    bench::compare(o, one, ours, reference);
  }
  if (o.wants(four.id)) {
    using row = ps::json_fields<ps::json_field<"id", std::string_view>, ps::json_field<"label", std::int64_t>,
                                ps::json_field<"score", double>, ps::json_field<"text", std::string_view>>;
    row::scratch scratch;
    const auto ours = [&] {
      std::uint64_t sum = 0;
      for (const std::string& line : lines) {
        const auto found = row{}.decode(line, scratch);
        sum += ps::get<"id">(found).size() + ps::get<"text">(found).size() +
               static_cast<std::uint64_t>(ps::get<"label">(found)) +
               static_cast<std::uint64_t>(ps::get<"score">(found));
      }
      return sum;
    };
    const auto reference = [&] {
      std::uint64_t sum = 0;
      for (const std::string& line : lines) {
        kept_values<4> found({"id", "text", "label", "score"});
        nlohmann::json::sax_parse(line, &found);
        sum += found.texts[0].size() + found.texts[1].size() + static_cast<std::uint64_t>(found.numbers[2]) +
               static_cast<std::uint64_t>(found.numbers[3]);
      }
      return sum;
    };
    bench::compare(o, four, ours, reference);
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
