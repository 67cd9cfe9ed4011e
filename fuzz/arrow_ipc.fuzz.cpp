// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// An Arrow IPC file or stream, and what codecs make of its columns.

#include <penstock/codec/arrow_value.hpp>
#include <penstock/codec/unpack_lz4.hpp>
#include <penstock/codec/unpack_zstd.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

template <class T, class Value>
void decode(const Value& value) {
  outcome([&] {
    typename ps::arrow_value<T>::scratch scratch;
    const auto made = ps::arrow_value<T>{}.decode(value, scratch);
    if constexpr (requires { made.has_value(); }) {
      must(made.has_value() != value.cell().is_null(), "what is null has no value");
      if (made) touch(*made);
    } else if constexpr (requires { made.data(); }) {
      touch({reinterpret_cast<const std::byte*>(made.data()), made.size() * sizeof(*made.data())});
    } else {
      must(!value.cell().is_null(), "what is null is no number");
    }
  });
}

template <class T, class Value>
void decode_array(const Value& value) {
  outcome([&] {
    typename ps::arrow_array<T>::scratch scratch;
    const auto view = ps::arrow_array<T>{}.decode(value, scratch).finish();
    touch({reinterpret_cast<const std::byte*>(view.data()), view.shape().elements() * sizeof(T)});
  });
}

/// The bytes of a row's values; the error of one that has none.
template <class Row>
std::string bytes_of_row(const Row& row) {
  std::string all;
  for (std::size_t k = 0; k < row.size(); ++k) {
    const std::string refused = outcome([&] {
      const auto value = row.member(k);
      const ps::bytes_view found = value.finish();
      if (value.size() != 0) must(value.size() == found.size(), "a value has the size that it says");
      all += std::to_string(found.size()) + ' ';
      all += ps::text_of(found);
    });
    all += refused + '\n';
  }
  return all;
}

/// What some rows from both ends have, or the lines of their errors.
template <class Data>
std::string rows_of(const Data& all, bool with_codecs) {
  std::string lines;
  const auto reader = all.connect();
  typename decltype(all.connect())::worker worker;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(all.size(), 20); ++i)
    for (const std::uint64_t at : {i, all.size() - 1 - i}) {
      std::string once, twice;
      const std::string refused = outcome([&] {
        reader.evaluate({0, at}, worker, [&](const auto& row) {
          once = bytes_of_row(row);
          for (std::size_t k = 0; with_codecs && k < row.size(); ++k)
            outcome([&] {
              const auto value = row.member(k);
              decode<std::int64_t>(value);
              decode<double>(value);
              decode<std::optional<std::string>>(value);
              decode<std::vector<std::int32_t>>(value);
              decode_array<float>(value);
              decode_array<std::uint8_t>(value);
            });
        });
      });
      const std::string again = outcome([&] {
        reader.evaluate({0, at}, worker, [&](const auto& row) { twice = bytes_of_row(row); });
      });
      must(refused == again && once == twice, "a row has the same bytes whenever it is read");
      lines += refused.empty() ? once : std::string("refused\n");
    }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const file_in_memory file;
  const ps::bytes_view bytes = input(data, size).rest();
  file.write(bytes);
  std::string shown, copied;
  const std::string refused = outcome([&] {
    shown = rows_of(
        ps::arrow_ipc<ps::unpack_lz4, ps::unpack_zstd>(ps::memory_files().add_view("x.arrow", bytes)), true);
  });
  // The same through a session that copies, of which no batch but the current one is kept.
  const std::string other = outcome([&] {
    copied = rows_of(ps::arrow_ipc<ps::unpack_lz4, ps::unpack_zstd>(
                         ps::file(std::vector{file.path()}, {.access = ps::file_access::read}), {.keep = 0}),
                     false);
  });
  must(refused.empty() == other.empty(), "both storages give rows, or both an error");
  must(shown == copied, "both storages give the same rows");
  return 0;
}
