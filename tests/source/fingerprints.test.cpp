// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A dataset has one fingerprint, in every process and whether its storage shows bytes in place or copies
// them: otherwise no state could be restored. Each child fills what it frees with another byte, so that a
// source that looks at memory it has given back finds something else there in each of them.

#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/ffcv.hpp>
#include <penstock/source/idx.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/source/litdata.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/npz_rows.hpp>
#include <penstock/source/raw_ranges.hpp>
#include <penstock/source/safetensors.hpp>
#include <penstock/source/tfrecord.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/sha256_check.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/dataset_files.hpp"
#include "support/litdata_files.hpp"
#include "support/mds_files.hpp"
#include "support/tf_files.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace fingerprints_test {

using prints = std::map<std::string, std::uint64_t>;

/// A table with enough rows that they do not fit where the descriptions of its fields were.
std::string large_ffcv(bool images) {
  std::vector<ffcv_writer::field> fields{{1, "label"}, {0, "weight"}};
  if (images) fields.push_back({2, "image"});
  std::vector<ffcv_writer::sample> samples;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    samples.push_back({ffcv_writer::number(i * i), ffcv_writer::real(static_cast<double>(i) / 7)});
    if (images) samples.back().push_back(ffcv_writer::image(false, 1, 1, std::string(i % 50, 'x')));
  }
  return ffcv_writer(fields).file(samples, true);
}

/// Arrays whose header does not fit where a shorter one was.
std::string large_npz() {
  zip_writer zip;
  for (int i = 0; i < 300; ++i)
    zip.add("array_" + std::to_string(i) + ".npy", npy_text<float>(ps::extents{5, 2}));
  return zip.add("last.npy", npy_text<std::int32_t>(ps::extents{7, 3})).text();
}
std::string large_safetensors() {
  std::string header = "{";
  for (int i = 0; i < 200; ++i)
    header += "\"t" + std::to_string(i) + R"(":{"dtype":"F32","shape":[3,2],)" + R"("data_offsets":[)" +
              std::to_string(24 * i) + "," + std::to_string(24 * i + 24) + "]},";
  header.back() = '}';
  std::string bytes = little_bytes(std::uint64_t{header.size()}) + header;
  for (int i = 0; i < 200 * 24; ++i) bytes += static_cast<char>(i);
  return bytes;
}

std::vector<std::pair<std::string, std::string>> stored_files() {
  std::string tokens;
  for (int i = 0; i < 100'000; ++i)
    tokens += static_cast<char>(static_cast<unsigned>(i) * static_cast<unsigned>(i));
  return {{"big.beton", large_ffcv(false)},
          {"images.beton", large_ffcv(true)},
          {"shard.tar", shard_bytes(500)},
          {"x.tfrecord", tf_records_of(numbered_payloads(0, 500))},
          {"x.npy", npy_text<double>(ps::extents{1000, 3})},
          {"x.npz", large_npz()},
          {"x.safetensors", large_safetensors()},
          {"x.bin", tokens},
          {"llmc.bin", llmc_bytes(5000)},
          {"mega.bin", std::string(2 * 5000, '\1')},
          {"mega.idx", megatron_index(5000, 8)},
          {"stream.arrow", std::string(arrow_oracle("stream.arrow"))},
          {"file.arrow", std::string(arrow_oracle("file.arrow"))}};
}

/// The fingerprints of what a storage holds, `stored(name)` and `stored(name, another)`.
template <class Stored>
void add_all(prints& found, const Stored& stored) {
  const auto add = [&found](const char* name, const auto& source) { found[name] = source.fingerprint(); };
  constexpr ps::index_policy none = ps::index_policy::transient;
  add("ffcv", ps::ffcv(stored("big.beton")));
  add("ffcv of images", ps::ffcv(stored("images.beton")));
  add("webdataset", ps::webdataset(stored("shard.tar"), {.index = none}));
  add("tfrecord", ps::tfrecord(stored("x.tfrecord"), {.index = none}));
  add("npy_rows", ps::npy_rows<double>(stored("x.npy")));
  add("npz_rows", ps::npz_rows<std::int32_t>(stored("x.npz"), "last"));
  add("safetensors_rows", ps::safetensors_rows<float>(stored("x.safetensors"), "t150"));
  add("raw_tokens", ps::raw_tokens<std::uint16_t>(stored("x.bin"), ps::token_window<64>{}));
  add("llmc_tokens", ps::llmc_tokens<std::uint16_t>(stored("llmc.bin"), ps::token_window<64>{}));
  add("megatron_tokens",
      ps::megatron_tokens<std::uint16_t>(stored("mega.bin", "mega.idx"), ps::token_window<64>{}));
  add("arrow_ipc, a stream", ps::arrow_ipc(stored("stream.arrow")));
  add("arrow_ipc, a file", ps::arrow_ipc(stored("file.arrow")));
  const ps::sha256_hash hash = ps::sha256_of(stored("big.beton")).entries().front().hash;
  found["sha256_of"] = ps::detail::load_little<std::uint64_t>(hash.bytes.data());
}

/// Those of sources that take a path.
void add_folders(prints& found, const std::filesystem::path& folder) {
  const auto at = [&](const char* name) { return (folder / name).string(); };
  found["mds"] = ps::mds(at("mds/values")).fingerprint();
  found["litdata"] = ps::litdata(at("litdata/values")).fingerprint();
  found["litdata_rows"] = ps::litdata_rows(at("litdata/rows")).fingerprint();
  found["litdata_tokens"] =
      ps::litdata_tokens<std::int32_t>(at("litdata/tokens"), ps::token_windows{.length = 4, .targets = 0})
          .fingerprint();
  found["directory"] = ps::directory(at("classes"), {.extensions = {"txt"}}).fingerprint();
  found["idx"] = ps::idx(at("x-idx")).fingerprint();
  found["raw_ranges"] = ps::raw_ranges<std::uint8_t>(at("x.bin"), ps::extents{100}).fingerprint();
  found["lines"] = ps::lines(at("x.bin")).fingerprint();
}

/// All of them, as a child process finds them.
prints in_another_process(const std::filesystem::path& folder, int fill) {
  const std::filesystem::path result = folder / ("found" + std::to_string(fill));
  const int code = in_child([&] {
#ifdef __GLIBC__
    ::mallopt(M_PERTURB, fill);
#endif
    prints found;
    add_all(found, [&](const auto&... names) {
      return ps::file(std::vector<std::string>{(folder / names).string()...},
                      {.access = ps::file_access::read});
    });
    add_folders(found, folder);
    std::ofstream out(result);
    for (const auto& [name, value] : found) out << value << ' ' << name << '\n';
    return out.flush() ? 0 : 1;
  });
  REQUIRE(code == 0);
  prints found;
  std::ifstream in(result);
  std::uint64_t value = 0;
  for (std::string name; in >> value && std::getline(in >> std::ws, name);) found[name] = value;
  return found;
}

}  // namespace fingerprints_test
using namespace fingerprints_test;

TEST_CASE("source/fingerprints: a dataset has one in every process, however its storage reads") {
  const dataset_folder folder;
  ps::memory_files in_memory;
  for (const auto& [name, bytes] : stored_files()) {
    folder.write(name, bytes);
    in_memory.add(name, bytes);
  }
  mds_folder mosaic;
  litdata_folder lightning;
  std::filesystem::copy(mosaic(""), folder("mds"), std::filesystem::copy_options::recursive);
  std::filesystem::copy(lightning(""), folder("litdata"), std::filesystem::copy_options::recursive);
  folder.write("classes/a/1.txt", "one");
  folder.write("classes/b/2.txt", "two");
  folder.write("x-idx", idx_bytes({500, 4}, 2000));

  const prints one = in_another_process(folder.dir.path(), 0x11);
  const prints other = in_another_process(folder.dir.path(), 0xee);
  CHECK(one.size() == 21);
  for (const auto& [name, value] : one) {
    INFO(name);
    CHECK(other.at(name) == value);
  }
  // bytes that are shown in place are not copied to memory that could be reused
  prints shown;
  add_all(shown, [&](const auto&... names) { return in_memory.with_names({std::string(names)...}); });
  CHECK(shown.size() == 13);
  for (const auto& [name, value] : shown) {
    INFO(name);
    CHECK(one.at(name) == value);
  }
}

TEST_CASE("source/fingerprints: a table of FFCV that differs in one row has another one") {
  const dataset_folder folder;
  std::string bytes = large_ffcv(false);
  const auto print_of = [&] {
    return ps::ffcv(ps::file(std::vector{folder.write("x.beton", bytes)}, {.access = ps::file_access::read}))
        .fingerprint();
  };
  const std::uint64_t before = print_of();
  bytes[24 + 2 * 1041 + 16 * 1234] ^= 1;
  CHECK(print_of() != before);
}
