// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A TFRecord file: [1 as it is, 2 with right checksums][file]

#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/codec/unpack_zlib.hpp>
#include <penstock/source/tfrecord.hpp>
#include <penstock/source/tfrecord_stream.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

/// Writes right checksums wherever there is room for a record.
void repair(std::string& file) {
  const auto put = [&](std::size_t at, std::uint32_t value) {
    std::memcpy(file.data() + at, &value, sizeof value);
  };
  for (std::size_t at = 0; file.size() - at >= 16;) {
    const ps::bytes_view rest = ps::bytes_of(file).subspan(at);
    const std::uint64_t size = ps::detail::load_little<std::uint64_t>(rest.data());
    put(at + 8, ps::detail::masked_crc(rest.first(8)));
    if (size > file.size() - at - 16) return;
    put(at + 12 + size, ps::detail::masked_crc(ps::bytes_of(file).subspan(at + 12, size)));
    at += 16 + size;
  }
}

/// What an indexed source delivers, each record as a line.
template <class Data>
std::string records_of(const Data& all) {
  std::string lines;
  const auto reader = all.connect();
  typename decltype(all.connect())::worker worker;
  for (std::uint64_t i = 0; i < all.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& record) {
      const ps::bytes_view payload = record.finish();
      must(payload.size() == record.size(), "a record has the size that it says");
      std::string copy(payload.size(), '\0');
      record.read_into({reinterpret_cast<std::byte*>(copy.data()), copy.size()});
      must(copy == ps::text_of(payload), "both ways of reading agree");
      lines += std::to_string(copy.size()) + " " + copy + "\n";
    });
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const file_in_memory file;
  input in(data, size);
  const bool right = in.number() == 2;
  std::string bytes(ps::text_of(in.rest()));
  if (right) repair(bytes);
  file.write(ps::bytes_of(bytes));

  std::string shown, copied, streamed;
  const ps::tfrecord_options no_files{.index = ps::index_policy::transient};
  const std::string refused = outcome([&] {
    shown = records_of(ps::tfrecord(ps::memory_files().add_view("a", ps::bytes_of(bytes)), no_files));
  });
  const std::string other = outcome([&] {
    copied = records_of(
        ps::tfrecord(ps::file(std::vector{file.path()}, {.access = ps::file_access::read}), no_files));
  });
  must(refused.empty() == other.empty(), "both storages give records, or both an error");
  if (refused.empty()) must(shown == copied, "both storages give the same records");

  static const auto source = ps::tfrecord_stream<ps::unpack_gzip, ps::unpack_zlib>(
      ps::file(std::vector{file.path()}, {.access = ps::file_access::read}), {.limit = 1 << 20});
  static auto reader = source.connect();  // whatever a file did to it, it reads the next one
  static std::string record;
  const std::string stopped = outcome([&] {
    reader.rewind(0);
    while (reader.next(record)) {
      must(record.size() <= 1 << 20, "a record keeps to its limit");
      streamed += std::to_string(record.size()) + " " + record + "\n";
    }
  });
  if (refused.empty()) must(stopped.empty() && streamed == shown, "reading forward gives the same records");
  return 0;
}
