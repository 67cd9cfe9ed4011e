// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

/// Shared by the tests of bad samples: sources with bad samples, and everything visible of a run as
/// text.
namespace bad_samples_test {

/// Returns i for i, and throws for the numbers in a list.
struct broken {
  std::vector<std::uint64_t> which;
  penstock::errc code = penstock::errc::format;

  std::uint64_t operator()(std::uint64_t i) const {
    for (const std::uint64_t one : which)
      if (one == i)
        throw penstock::error(code, "sample " + std::to_string(i) + " is broken").in_stage("broken");
    return i;
  }
};

inline const std::vector<std::uint64_t> some = {0, 3, 4, 17, 25, 26, 27, 39};

/// Numbers in two shards, some of them broken.
inline auto broken_source(std::uint64_t size = 40, penstock::errc code = penstock::errc::format) {
  return penstock::generated(size, broken{some, code}, {0, size / 4, size});
}

inline std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A number, or the numbers of an array.
template <class V>
std::string words(const V& value) {
  if constexpr (requires { value.values(); }) {
    return words(value.values());
  } else if constexpr (requires { std::to_string(value); }) {
    return std::to_string(value);
  } else {
    std::string text = "(";
    for (const auto& one : value) text += std::to_string(one) + " ";
    return text + ")";
  }
}

/// A whole batch as text: each slot's value, "-" after it if it is not valid, and its origin.
template <class Batch>
std::string text_of(const Batch& b) {
  std::string text = std::to_string(b.epoch()) + "/" + std::to_string(b.step()) + ":";
  const auto values = b.values();
  const auto mask = b.valid();
  const auto positions = b.positions();
  std::size_t valid = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    text += " " + words(values[i]) + (mask[i] != 0 ? "" : "-");
    if (i < positions.size()) text += "@" + std::to_string(positions[i].index);
    valid += mask[i];
  }
  return valid == b.valid_size() ? text : "valid_size() and valid() differ";
}

struct seen {
  std::vector<std::string> elements;
  std::vector<std::string> states;  // after each element
  std::string failure;              // the error that ended the run
  penstock::bad_sample_counts counts{};
  friend bool operator==(const seen& a, const seen& b) {
    return a.elements == b.elements && a.states == b.states && a.failure == b.failure &&
           a.counts.skipped == b.counts.skipped && a.counts.replaced == b.counts.replaced;
  }
};

/// Takes elements of a run until it ends, or `maximum`.
template <class Run>
seen take_from(Run& run, std::uint64_t epochs, std::size_t maximum = 1'000'000) {
  seen all;
  const auto full = [&] { return all.elements.size() == maximum; };
  try {
    for (auto epoch : run.epochs(epochs)) {
      if (full()) break;
      for (auto&& element : epoch) {
        if constexpr (requires { element.valid_size(); })
          all.elements.push_back(text_of(element));
        else
          all.elements.push_back(words(element));
        all.states.push_back(to_string(run.state()));
        if (full()) break;
      }
    }
  } catch (const std::exception& e) {
    all.failure = e.what();
  }
  all.counts = run.bad_samples();
  return all;
}
template <class Plan, class... From>
seen look(const Plan& plan, std::uint64_t epochs = 1, const From&... from) {
  auto run = (plan | penstock::allow_empty).open(from...);
  return take_from(run, epochs);
}

}  // namespace bad_samples_test
