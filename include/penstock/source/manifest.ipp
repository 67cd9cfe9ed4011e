// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/manifest.hpp>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE manifest::manifest(std::vector<shard> shards) {
  shared<tables> made(new tables());
  shared<std::vector<std::uint64_t>> begins(new std::vector<std::uint64_t>());
  penstock::fingerprint mark;
  mark.add("manifest", shards.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const shard& s = shards[i];
    if (s.samples != 0) {
      begins->push_back(made->samples);
      made->filled.push_back(i);
    }
    if (s.samples > max_samples - made->samples) {
      throw error(errc::limit, {"the files hold more than ", max_samples, " samples together"})
          .in_file(s.name);
    }
    made->samples += s.samples;
    made->payload += s.payload;
    made->bytes += s.bytes;
    made->unended += s.unended ? 1 : 0;
    mark.add(std::string_view(s.name).substr(s.name.rfind('/') + 1), s.bytes, s.samples, s.content);
  }
  if (begins->empty()) begins->push_back(0);
  if (made->samples != 0)
    made->shards_per_sample = static_cast<double>(begins->size()) / static_cast<double>(made->samples);
  begins->push_back(made->samples);
  made->fingerprint = mark.value();
  made->starts = std::move(begins);
  made->shards = std::move(shards);
  tables_ = std::move(made);
}

PENSTOCK_INLINE manifest::place manifest::locate(std::uint64_t index) const noexcept {
  const auto& starts = *tables_->starts;
  // Shards are mostly of equal size; a search for each of many samples misses the branch predictor.
  auto which = static_cast<std::size_t>(static_cast<double>(index) * tables_->shards_per_sample);
  if (which + 1 >= starts.size() || index < starts[which] || index >= starts[which + 1]) {
    const auto after = std::upper_bound(starts.begin(), starts.end(), index);
    which = static_cast<std::size_t>(after - starts.begin()) - 1;
  }
  return {tables_->filled[which], index - starts[which], starts[which]};
}

PENSTOCK_INLINE std::string to_string(const manifest& all) {
  std::string text = "penstock manifest 2 " + std::to_string(all.shards().size()) + "\n";
  for (const manifest::shard& s : all.shards()) {
    for (const std::uint64_t number : {s.bytes, s.samples, s.payload, s.content, s.stamp,
                                       std::uint64_t{s.unended}, std::uint64_t{s.name.size()}})
      text.append(std::to_string(number)).append(" ");
    text.append(s.name).append("\n");
  }
  return text;
}

PENSTOCK_INLINE manifest manifest_from_string(std::string_view text) {
  std::size_t at = 0;
  const auto fail = [&at](std::string_view wanted) {
    throw error(errc::format, {"this is not a manifest, or it was cut or edited: expected ", wanted})
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
  expect("penstock manifest 2 ", "'penstock manifest 2'");
  const std::uint64_t count = number("\n", "the end of the line");
  std::vector<manifest::shard> shards;
  for (std::uint64_t i = 0; i < count; ++i) {  // grows only as the text is read, whatever count it announces
    manifest::shard one;
    for (std::uint64_t* field : {&one.bytes, &one.samples, &one.payload, &one.content, &one.stamp})
      *field = number(" ", "a blank");
    const std::uint64_t unended = number(" ", "a blank");
    if (unended > 1) fail("0 or 1, and a blank");
    one.unended = unended == 1;
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

PENSTOCK_INLINE std::span<const manifest::shard> manifest::shards() const noexcept { return tables_->shards; }

PENSTOCK_INLINE manifest detail::manifest_in(session_view session, storage_facts where) {
  if (where.names.size() != 1) {
    throw error(errc::argument,
                {"a manifest is one object, and the storage has ", where.names.size(), "; name the one"});
  }
  return detail::in_file(where.names[0], [&] {
    const object_bytes text = session.range(0, 0, session.size(0));
    return manifest_from_string(text_of(text));
  });
}

}  // namespace penstock::inline v0_1
