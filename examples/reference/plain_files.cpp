// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Datasets that are plain files: windows of tokens, files in folders of classes, lines of text, rows of an
// npy file. Each can be shuffled, sharded and stopped like any other dataset.

#include <penstock/codec/npy.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;

namespace {

template <class T>
void write(const fs::path& path, std::span<const T> values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
}

bool windows_of_tokens(const fs::path& folder) {
  std::vector<std::uint16_t> text(4096 + 1);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::uint16_t>(i);
  write<std::uint16_t>(folder / "train.bin", text);

  const auto loader = ps::raw_tokens<std::uint16_t>((folder / "train.bin").string(), ps::token_window<64>{}) |
                      ps::shuffle(ps::seed(7)) | ps::shard(0, 2) | ps::batch(4);
  std::size_t steps = 0;
  bool works = true;
  for (auto&& b : loader.epoch(0)) {
    const auto rows = b.values();  // tensor_view<const std::uint16_t>, (4, 65)
    for (std::size_t i = 0; i < rows.shape()[0]; ++i) {
      const auto inputs = rows[i].values().first(64), targets = rows[i].values().last(64);
      works = works && targets[0] == inputs[1] && targets[63] == inputs[63] + 1;
    }
    ++steps;
  }
  std::printf("%zu steps of 4 windows of 64 tokens and their targets\n", steps);
  return works && steps == 8;
}

bool folders_of_classes(const fs::path& folder) {
  for (const char* const name : {"cat/1.txt", "cat/2.txt", "dog/1.txt"}) {
    fs::create_directories((folder / "animals" / name).parent_path());
    std::ofstream(folder / "animals" / name) << name;
  }
  const ps::directory files((folder / "animals").string(), {.extensions = {"txt"}});
  bool works = files.classes().size() == 2;
  for (auto&& b :
       files | ps::decode<ps::field<"bytes", ps::text>> | ps::batch(3, ps::collate<"bytes">(ps::ragged))) {
    for (std::size_t i = 0; i < b.size(); ++i) {
      const auto label = static_cast<std::size_t>(get<"label">(b)[i]);
      const auto letters = get<"bytes">(b)[i];
      works = works && std::string(letters.begin(), letters.end()).starts_with(files.classes()[label]);
    }
  }
  std::printf("%s\n", files.classes()[1].c_str());
  return works;
}

bool lines_and_rows(const fs::path& folder) {
  std::ofstream(folder / "names.txt") << "ada\r\ngrace\nbarbara";
  const auto names = ps::lines((folder / "names.txt").string());
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  write<std::byte>(folder / "x.npy", ps::npy_bytes<float>(ps::extents(3, 2), std::span<const float>(values)));
  const auto rows = ps::npy_rows<float>((folder / "x.npy").string());
  float sum = 0;
  for (auto&& b : rows | ps::batch(3))
    for (const float value : b.values().flat()) sum += value;
  std::printf("%s; %s\n", names.describe().c_str(), rows.describe().c_str());
  return names.size() == 3 && sum == 21.0f;
}

}  // namespace

int main() {
  std::string pattern = (fs::temp_directory_path() / "plain_files_XXXXXX").string();
  const char* const made = ::mkdtemp(pattern.data());
  if (made == nullptr) return 1;
  const fs::path folder = made;
  const bool works = windows_of_tokens(folder) && folders_of_classes(folder) && lines_and_rows(folder);
  fs::remove_all(folder);
  return works ? 0 : 1;
}
