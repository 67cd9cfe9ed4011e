// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock_test {

/// A page in Prometheus' text format 0.0.4, read strictly: each metric has HELP, then TYPE, then its series,
/// all in one place; names are legal, labels escaped, no series comes twice, and histograms add up. Throws
/// std::runtime_error with the line.
class metrics_page {
 public:
  using labels = std::map<std::string, std::string>;
  struct metric {
    std::string help, type;
    std::map<labels, double> series;                     // by the labels without `le`
    std::map<labels, std::map<double, double>> buckets;  // by the bound
    std::map<labels, std::pair<double, double>> sum_and_count;
  };

  explicit metrics_page(std::string_view all) {
    while (!all.empty()) {
      const std::size_t end = all.find('\n');
      if (end == std::string_view::npos) wrong("a last line without its end");
      line_ = all.substr(0, end);
      all.remove_prefix(end + 1);
      if (line_.substr(0, 7) == "# HELP ")
        begin(line_.substr(7));
      else if (line_.substr(0, 7) == "# TYPE ")
        set_type(line_.substr(7));
      else
        add_series(line_);
    }
    for (const auto& [name, one] : metrics) {
      line_ = name;
      if (one.type.empty()) wrong("no type");
      if (one.type == "histogram") check_histogram(one);
    }
  }

  [[nodiscard]] double value(const std::string& name, const labels& of = {}) const {
    return metrics.at(name).series.at(of);
  }

  std::map<std::string, metric> metrics;

 private:
  [[noreturn]] void wrong(std::string_view why) const {
    throw std::runtime_error(std::string(why) + ": " + std::string(line_));
  }
  static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  std::string take_name(std::string_view& rest) const {
    std::size_t size = 0;
    while (size < rest.size() &&
           (letter(rest[size]) || (size != 0 && rest[size] >= '0' && rest[size] <= '9')))
      ++size;
    if (size == 0) wrong("no name");
    std::string name(rest.substr(0, size));
    rest.remove_prefix(size);
    return name;
  }
  void take(std::string_view& rest, char c) const {
    if (rest.empty() || rest[0] != c) wrong(std::string("no ") + c);
    rest.remove_prefix(1);
  }
  void begin(std::string_view rest) {
    current_ = take_name(rest);
    take(rest, ' ');
    if (rest.empty()) wrong("no help");
    if (!metrics.emplace(current_, metric{std::string(rest), {}, {}, {}, {}}).second) wrong("a second HELP");
  }
  void set_type(std::string_view rest) {
    if (take_name(rest) != current_) wrong("a TYPE without its HELP");
    take(rest, ' ');
    metric& of = metrics.at(current_);
    if (!of.type.empty() || !of.series.empty()) wrong("a second TYPE");
    of.type = std::string(rest);
    const std::string_view total = "_total";
    const bool counts = current_.size() > 6 && current_.substr(current_.size() - 6) == total;
    if (counts != (of.type == "counter")) wrong("a counter is called _total, and nothing else is");
  }
  void add_series(std::string_view rest) {
    std::string name = take_name(rest);
    metric& of = metrics.at(current_);
    labels all;
    if (!rest.empty() && rest[0] == '{') {
      do {
        rest.remove_prefix(1);
        const std::string label = take_name(rest);
        take(rest, '=');
        take(rest, '"');
        std::string value;
        for (; !rest.empty() && rest[0] != '"'; rest.remove_prefix(1)) {
          char c = rest[0];
          if (c == '\\') {
            rest.remove_prefix(1);
            if (rest.empty() || (rest[0] != '\\' && rest[0] != '"' && rest[0] != 'n')) wrong("an escape");
            c = rest[0] == 'n' ? '\n' : rest[0];
          }
          value += c;
        }
        take(rest, '"');
        if (!all.emplace(label, value).second) wrong("a label twice");
      } while (!rest.empty() && rest[0] == ',');
      take(rest, '}');
    }
    take(rest, ' ');
    const double value = number(std::string(rest));
    if (value < 0) wrong("below 0");
    if (of.type != "histogram") {
      if (name != current_ || !of.series.emplace(all, value).second) wrong("another metric's, or twice");
      return;
    }
    if (name == current_ + "_sum") return static_cast<void>(of.sum_and_count[all].first = value);
    if (name == current_ + "_count") return static_cast<void>(of.sum_and_count[all].second = value);
    if (name != current_ + "_bucket") wrong("another metric's");
    const double bound = number(all.at("le"));
    all.erase("le");
    if (!of.buckets[all].emplace(bound, value).second) wrong("a bucket twice");
  }
  double number(const std::string& text) const {
    std::size_t end = 0;
    const double value = std::stod(text == "+Inf" ? "inf" : text, &end);
    if (text != "+Inf" && end != text.size()) wrong("a number");
    return value;
  }
  void check_histogram(const metric& one) const {
    if (one.buckets.size() != one.sum_and_count.size()) wrong("buckets without their sum");
    for (const auto& [of, buckets] : one.buckets) {
      double before = 0;
      for (const auto& [bound, count] : buckets) {
        if (count < before) wrong("buckets that are not cumulative");
        before = count;
      }
      if (buckets.rbegin()->first < 1e300 || before != one.sum_and_count.at(of).second)
        wrong("no last bucket");
    }
  }

  std::string current_;
  std::string_view line_;
};

}  // namespace penstock_test
