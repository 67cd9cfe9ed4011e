// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Rows of an array in an npz file: [type][bytes of the name][name][file]

#include <penstock/source/npy_rows.hpp>
#include <penstock/source/npz_rows.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"

#include <cstddef>
#include <span>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

/// The bytes of some rows from both ends: no number equals itself where it is none.
template <class Rows>
std::vector<std::byte> some_of(const Rows& rows) {
  std::vector<std::byte> all;
  const auto reader = rows.connect();
  typename Rows::reader::worker worker;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(rows.size(), 20); ++i)
    for (const std::uint64_t at : {i, rows.size() - 1 - i})
      reader.evaluate({0, at}, worker, [&](const auto& row) {
        const auto view = row.finish();
        const auto bytes =
            std::as_bytes(std::span(view.data(), static_cast<std::size_t>(view.shape().elements())));
        all.insert(all.end(), bytes.begin(), bytes.end());
      });
  return all;
}

template <class T>
void read(ps::bytes_view bytes, std::string_view name) {
  static const file_in_memory on_disk;
  on_disk.write(bytes);
  const auto memory = ps::memory_files().add_view("a", bytes);
  std::vector<std::byte> viewed, copied;
  const std::string first = outcome([&] {
    const auto rows = ps::npz_rows<T>(memory, name);
    must(rows.row().elements() * sizeof(T) * rows.size() <= bytes.size(), "rows are within their file");
    viewed = some_of(rows);

    auto session = memory.connect();
    const auto member = ps::detail::find_zip_array(session, 0, bytes.size(), name);
    must(member.begin <= bytes.size() && member.size <= bytes.size() - member.begin,
         "a member is in its file");
    const auto alone = ps::npy_rows<T>(ps::memory_files().add_view(
        "a", bytes.subspan(static_cast<std::size_t>(member.begin), static_cast<std::size_t>(member.size))));
    must(some_of(alone) == viewed, "the member alone has the same rows");
  });
  const std::string second =
      outcome([&] { copied = some_of(ps::npz_rows<T>(ps::file(on_disk.path()), name)); });
  must(first.empty() == second.empty() && viewed == copied, "viewed or read, the rows are the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned type = in.number();
  const ps::bytes_view name = in.take(in.number());
  const ps::bytes_view bytes = in.rest();
  if (type % 2 == 0)
    read<float>(bytes, ps::text_of(name));
  else
    read<std::uint8_t>(bytes, ps::text_of(name));
  return 0;
}
