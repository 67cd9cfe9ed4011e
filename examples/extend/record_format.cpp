// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A file format of your own: shelves. Their records have keys and three fields, and are read from files and
// from a distant storage, in any order, by any number of ranks.

#include <penstock/codec/raw_number.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/record_files.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
namespace mine {
// A shelf has the images and notes of all records, then a row for each of them, then where the rows begin.
struct row {
  char key[8];
  std::int64_t label;
  std::uint64_t begin;        // of the image; the note lies behind it
  std::uint32_t image, note;  // bytes
};
struct shelf_end {
  std::uint64_t rows_begin, rows, magic;
};
constexpr std::uint64_t magic = 0x464c454853;  // "SHELF"

/// What is kept of a file.
class shelf_index {
 public:
  shelf_index(ps::session_view session, ps::object_id file) : size_(session.size(file)) {
    shelf_end end{};
    if (size_ >= sizeof(end))
      session.read(file, size_ - sizeof(end), std::as_writable_bytes(std::span(&end, 1)));
    if (end.magic != magic || end.rows > size_ / sizeof(row) ||
        end.rows_begin != size_ - sizeof(end) - end.rows * sizeof(row))
      throw ps::error(ps::errc::format, "this is no shelf, or it was cut off").at_offset(size_);
    rows_.resize(end.rows);
    session.read(file, end.rows_begin, std::as_writable_bytes(std::span(rows_)));
  }
  [[nodiscard]] std::uint64_t records() const { return rows_.size(); }
  [[nodiscard]] static const std::vector<ps::record_field>& fields() {
    static const std::vector<ps::record_field> all{
        {"image", "bytes"}, {"note", "text"}, {"label", "int64", /*in_index=*/true}};
    return all;
  }
  [[nodiscard]] ps::value_place place(std::uint64_t record, std::size_t field) const {
    const row& at = rows_[record];
    if (at.begin > size_ || std::uint64_t{at.image} + at.note > size_ - at.begin)
      throw ps::error(ps::errc::format, "the row points behind the file's end").at_offset(at.begin);
    if (field == 0) return {at.begin, at.image};
    if (field == 1) return {at.begin + at.image, at.note};
    return {0, sizeof(at.label), reinterpret_cast<const std::byte*>(&at.label)};
  }
  [[nodiscard]] std::string_view key(std::uint64_t record) const { return {rows_[record].key, 8}; }

 private:
  std::uint64_t size_;
  std::vector<row> rows_;
};

struct shelf {
  static constexpr std::string_view source_name = "shelf";
  using index = shelf_index;
  [[nodiscard]] static index read_index(ps::session_view session, ps::object_id file) {
    return {session, file};
  }
};
static_assert(ps::record_format<shelf>, "shelf is a format");

/// Makes a shelf of 100 records with images of 10000 bytes.
std::string shelf_of(int first) {
  std::string made;
  std::vector<row> rows(100);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string number = std::to_string(first + static_cast<int>(i)), note = "note " + number;
    rows[i] = {{}, std::stoll(number), made.size(), 10'000, static_cast<std::uint32_t>(note.size())};
    ("book" + number).copy(rows[i].key, 8);
    made += std::string(10'000, 'x') + note;
  }
  const shelf_end end{made.size(), rows.size(), magic};
  made.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(row));
  return made.append(reinterpret_cast<const char*>(&end), sizeof(end));
}

}  // namespace mine

int main() {
  const std::string folder = std::filesystem::temp_directory_path() / "penstock_shelves";
  std::filesystem::create_directories(folder);
  ps::memory_files memory;
  for (int i = 0; i < 4; ++i) {
    const std::string bytes = mine::shelf_of(100 * i), name = folder + "/" + std::to_string(i) + ".shelf";
    std::ofstream(name, std::ios::binary) << bytes;
    memory.add(name, bytes);
  }

  // From files: shuffled, the part of one of two ranks; stopped after five batches, and resumed.
  const auto source = ps::record_files(mine::shelf{}, folder + "/{0..3}.shelf");
  const auto loader = source | ps::shuffle(ps::seed(7)) | ps::shard(1, 2) |
                      ps::decode<ps::field<"label", ps::raw_number<std::int64_t>>> | ps::batch(10);
  static_assert(ps::indexed<decltype(loader)> && ps::resumable<decltype(loader)>, "nothing is lost");
  const auto labels_of = [](auto& run, int batches) {
    std::vector<std::int64_t> labels;
    for (; batches != 0; --batches)
      for (const std::int64_t label : get<"label">(*run.next())) labels.push_back(label);
    return labels;
  };
  auto whole = loader.open(), first = loader.open();
  const auto all = labels_of(whole, 20);
  auto seen = labels_of(first, 5);
  auto second = loader.open(first.state());
  for (const std::int64_t label : labels_of(second, 15)) seen.push_back(label);

  // From far away, read ahead: images are not used, and so not read.
  const ps::simulated_storage far(memory, {.latency = std::chrono::milliseconds(1)});
  std::size_t characters = 0;
  for (auto&& b : ps::record_files(mine::shelf{}, far) | ps::prefetch(64, {.coalesce_gap = 1024}) |
                      ps::decode<ps::field<"note", ps::text>> | ps::batch(50, ps::ragged))
    for (const auto& note : get<"note">(b)) characters += note.size();
  std::printf("%s\n%zu characters of notes, of %llu bytes that were read\n", source.describe().c_str(),
              characters, static_cast<unsigned long long>(far.bytes()));

  // A file that is cut off.
  std::filesystem::resize_file(folder + "/2.shelf", 5000);
  std::string problem;
  try {
    (void)ps::record_files(mine::shelf{}, folder + "/{0..3}.shelf");
  } catch (const ps::error& e) {
    problem = e.what();
  }
  std::puts(problem.c_str());
  std::filesystem::remove_all(folder);
  const bool good = seen == all && source.connect().key(207).starts_with("book207") && characters == 3090;
  return good && far.bytes() < 100'000 && problem.find("2.shelf, offset 5000") != problem.npos ? 0 : 1;
}
