// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// What shards a dataset has: their names, bytes and numbers of samples, with a fingerprint of it all.
///
/// The fingerprint is a function of each shard's name without its folders, of its size, its number of samples
/// and a checksum of its index: it stays the same when the dataset is copied to another place, and changes
/// when a key, or the place or size of a member, does. Other bytes in members that stay where they were are
/// not seen, since that would cost reading them.
/// A value; copies share their tables. Threads: const after it is made.
template <class = void>
class basic_manifest {
 public:
  struct shard {
    std::string name;
    std::uint64_t bytes = 0;  ///< size of the file
    std::uint64_t samples = 0;
    std::uint64_t payload = 0;  ///< bytes in the members of samples
    std::uint64_t content = 0;  ///< checksum of the index: where each member lies, and all keys
    /// When the file was last changed, in nanoseconds since 1970; 0: not known. Not in the fingerprint.
    std::uint64_t stamp = 0;
  };
  /// Where a sample is: the number of its shard, and its number in it.
  struct place {
    std::size_t shard = 0;
    std::uint64_t sample = 0;
    std::uint64_t first = 0;  ///< the number of the shard's first sample in the dataset
  };

  basic_manifest() : basic_manifest(std::vector<shard>{}) {}
  explicit basic_manifest(std::vector<shard> shards) {
    std::shared_ptr<tables> made(new tables());
    std::shared_ptr<std::vector<std::uint64_t>> begins(new std::vector<std::uint64_t>());
    penstock::fingerprint mark;
    mark.add("manifest", shards.size());
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const shard& s = shards[i];
      if (s.samples != 0) {
        begins->push_back(made->samples);
        made->filled.push_back(i);
      }
      if (s.samples > most_samples - made->samples) {
        throw error(errc::limit, {"the files hold more than ", most_samples, " samples together"})
            .in_file(s.name);
      }
      made->samples += s.samples;
      made->payload += s.payload;
      made->bytes += s.bytes;
      mark.add(std::string_view(s.name).substr(s.name.rfind('/') + 1), s.bytes, s.samples, s.content);
    }
    if (begins->empty()) begins->push_back(0);
    begins->push_back(made->samples);
    made->fingerprint = mark.value();
    made->starts = std::move(begins);
    made->shards = std::move(shards);
    tables_ = std::move(made);
  }

  [[nodiscard]] std::span<const shard> shards() const noexcept { return tables_->shards; }
  [[nodiscard]] std::uint64_t samples() const noexcept { return tables_->samples; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return tables_->bytes; }
  [[nodiscard]] std::uint64_t payload() const noexcept { return tables_->payload; }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return tables_->fingerprint; }
  /// Where the shards that have samples begin, and last the number of samples.
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const noexcept {
    return tables_->starts;
  }

  /// The place of sample `index`, which must be less than `samples()`. Logarithmic in the number of shards.
  [[nodiscard]] place locate(std::uint64_t index) const noexcept {
    const auto& starts = *tables_->starts;
    const auto after = std::upper_bound(starts.begin(), starts.end(), index);
    const auto which = static_cast<std::size_t>(after - starts.begin()) - 1;
    return {tables_->filled[which], index - starts[which], starts[which]};
  }

 private:
  // Samples of no bytes take no room: headers alone can announce more than can be counted.
  static constexpr std::uint64_t most_samples = std::uint64_t{1} << 62;

  struct tables {
    std::vector<shard> shards;
    std::vector<std::size_t> filled;  // the shards that have samples
    std::shared_ptr<const std::vector<std::uint64_t>> starts;
    std::uint64_t samples = 0;
    std::uint64_t bytes = 0;
    std::uint64_t payload = 0;
    std::uint64_t fingerprint = 0;
  };
  std::shared_ptr<const tables> tables_;
};
/// The form to use: see `basic_manifest`.
class manifest : public basic_manifest<> {
 public:
  using basic_manifest<>::basic_manifest;
};

/// A manifest as text, to be sent to other processes or kept in a file: `penstock manifest 1` and the number
/// of shards; then a line for each, with its bytes, samples, payload, content, stamp, the length of its name
/// in bytes, and the name.
template <class = void>
[[nodiscard]] std::string to_string(const manifest& all) {
  std::string text = "penstock manifest 1 " + std::to_string(all.shards().size()) + "\n";
  for (const manifest::shard& s : all.shards()) {
    for (const std::uint64_t number :
         {s.bytes, s.samples, s.payload, s.content, s.stamp, std::uint64_t{s.name.size()}})
      text.append(std::to_string(number)).append(" ");
    text.append(s.name).append("\n");
  }
  return text;
}

/// Reads what `to_string` wrote; anything else is `errc::format` with the offset.
template <class = void>
[[nodiscard]] manifest manifest_from_string(std::string_view text) {
  std::size_t at = 0;
  const auto fail = [&at](std::string_view wanted) {
    throw error(errc::format, {"this is no manifest, or it was cut or edited: expected ", wanted})
        .at_offset(at);
  };
  const auto expect = [&](std::string_view wanted, std::string_view called) {
    if (text.substr(at, wanted.size()) != wanted) fail(called);
    at += wanted.size();
  };
  const auto number = [&](std::string_view after, std::string_view called) {
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (failure != std::errc{}) fail("a number of 64 bits");
    at = static_cast<std::size_t>(end - text.data());
    expect(after, called);
    return value;
  };
  expect("penstock manifest 1 ", "'penstock manifest 1'");
  const std::uint64_t count = number("\n", "the end of the line");
  std::vector<manifest::shard> shards;
  for (std::uint64_t i = 0; i < count; ++i) {  // grows with the text, whatever it announces
    manifest::shard one;
    for (std::uint64_t* field : {&one.bytes, &one.samples, &one.payload, &one.content, &one.stamp})
      *field = number(" ", "a blank");
    const std::uint64_t length = number(" ", "a blank");
    if (length > text.size() - at) fail("the name of a shard");
    one.name = text.substr(at, static_cast<std::size_t>(length));
    at += one.name.size();
    expect("\n", "the end of the line");
    shards.push_back(std::move(one));
  }
  if (at != text.size()) fail("the end");
  return manifest(std::move(shards));
}

}  // namespace penstock::inline v0_1
