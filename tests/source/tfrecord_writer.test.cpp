// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/tfrecord_writer.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/external_program.hpp"
#include "support/temp_dir.hpp"
#include "support/tf_files.hpp"

#include <penstock/codec/tf_example.hpp>
#include <penstock/codec/tf_example_bytes.hpp>
#include <penstock/source/tfrecord.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/workers.hpp>

#include <sys/resource.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;
using namespace std::string_view_literals;

namespace tfrecord_writer_test {

std::string text_in(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("source/tfrecord_writer: the format's own vector, and files that appear when they are complete") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "a").string();
  {
    ps::tfrecord_writer out(path);
    out.write("hello"sv);
    CHECK(!std::filesystem::exists(path));
    CHECK(out.records() == 1);
    out.close();
    CHECK(text_in(path) == "\x05\0\0\0\0\0\0\0\xea\xb2\x04\x3ehello\xbb\x1f\x1c\x19"sv);
    CHECK_THAT(penstock_test::error_of([&] { out.write("more"sv); }),
               contains("this tfrecord_writer is closed"));
    CHECK_THAT(penstock_test::error_of([&] { out.close(); }), contains("this tfrecord_writer is closed"));
  }
  {
    ps::tfrecord_writer out((dir / "b").string());
    out.write("unfinished"sv);
  }
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
  CHECK_THAT(penstock_test::error_of([&] { ps::tfrecord_writer out((dir / "no" / "a").string()); }),
             contains("/no/a"));
  {
    // What cannot be written: the limit of a file's size is below the payload.
    struct rlimit before {};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto handled = std::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit small {
      1 << 20, before.rlim_max
    };
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    ps::tfrecord_writer out((dir / "full").string());
    const std::string failed = penstock_test::error_of([&] { out.write(std::string(3 << 20, 'a')); });
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    std::signal(SIGXFSZ, handled);
    CHECK_THAT(failed, contains("/full"));
    CHECK_THAT(penstock_test::error_of([&] { out.close(); }), contains("this tfrecord_writer is closed"));
    CHECK(!std::filesystem::exists(dir / "full"));
  }
  // every size up to the buffers' own, as a checksum that is computed bit by bit has it
  std::vector<std::string> payloads;
  for (const std::size_t size : {0u, 1u, 7u, 8u, 9u, 63u, 64u, 65u, 1000u, 4099u, 1'200'000u})
    payloads.push_back(std::string(size, static_cast<char>('a' + size % 26)));
  ps::tfrecord_writer out((dir / "c").string());
  for (const std::string& one : payloads) out.write(one);
  out.close();
  CHECK(text_in(dir / "c") == penstock_test::tf_records_of(payloads));
}

TEST_CASE("source/tfrecord_writer: the package tfrecord reads what is written, and what it writes is read") {
  const std::string python = penstock_test::peer_python();
  if (!penstock_test::have_program("the Python package tfrecord", python + " -c 'import tfrecord'")) return;
  const penstock_test::temp_dir dir;
  // Random examples, each as a line of text: what both sides must see.
  std::mt19937_64 random(7);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  std::string expected;
  ps::tfrecord_writer out((dir / "ours").string());
  for (int i = 0; i < 300; ++i) {
    std::vector<std::int64_t> integers(below(5));
    for (auto& one : integers)
      one = static_cast<std::int64_t>(random() >> below(64)) * (below(2) == 0 ? 1 : -1);
    std::vector<float> floats(below(4));
    for (auto& one : floats) one = static_cast<float>(static_cast<int>(below(2000)) - 1000) / 8;
    std::string bytes(below(300), '\0');
    for (char& c : bytes) c = static_cast<char>(below(256));
    out.write(ps::tf_example_bytes({{"i", std::span<const std::int64_t>(integers)},
                                    {"f", std::span<const float>(floats)},
                                    {"b", ps::bytes_of(bytes)}}));
    for (const auto one : integers) expected += std::to_string(one) + " ";
    expected += ";";
    for (const auto one : floats) expected += std::to_string(static_cast<int>(one * 8)) + " ";
    std::uint64_t sum = bytes.size();
    for (const char c : bytes) sum = (sum * 31 + static_cast<unsigned char>(c)) % 1'000'003;
    expected += ";" + std::to_string(sum) + "\n";
  }
  out.close();
  std::ofstream(dir / "peer.py") << R"(import sys
from tfrecord import example_pb2, reader, writer
folder = sys.argv[1]
out = writer.TFRecordWriter(folder + "/theirs")
for record in reader.tfrecord_iterator(folder + "/ours"):
    example = example_pb2.Example()
    example.ParseFromString(bytes(record))
    feature = example.features.feature
    i, f = list(feature["i"].int64_list.value), list(feature["f"].float_list.value)
    (b,) = feature["b"].bytes_list.value
    s = len(b)
    for c in b:
        s = (s * 31 + c) % 1000003
    print("".join(f"{one} " for one in i) + ";" + "".join(f"{int(one * 8)} " for one in f) + f";{s}")
    out.write({"b": (b, "byte"), "f": (f, "float"), "i": (i, "int")})
out.close()
)";
  const auto seen =
      penstock_test::run_program(python + " " + (dir / "peer.py").string() + " " + dir.path().string());
  CHECK(seen.output == expected);
  using example = ps::tf_example<ps::feature<"i", std::span<const std::int64_t>>,
                                 ps::feature<"f", std::span<const float>>, ps::feature<"b", ps::bytes>>;
  std::string found;
  const auto theirs = ps::tfrecord((dir / "theirs").string(), {.index = ps::index_policy::transient});
  for (auto&& one : (theirs | ps::decode<example> | ps::workers(0)).epoch(0)) {
    for (const auto value : ps::get<"i">(one)) found += std::to_string(value) + " ";
    found += ";";
    for (const auto value : ps::get<"f">(one)) found += std::to_string(static_cast<int>(value * 8)) + " ";
    const ps::bytes_view bytes = ps::as_bytes(ps::get<"b">(one));
    std::uint64_t sum = bytes.size();
    for (const auto c : bytes) sum = (sum * 31 + std::to_integer<std::uint64_t>(c)) % 1'000'003;
    found += ";" + std::to_string(sum) + "\n";
  }
  CHECK(found == expected);
}

}  // namespace tfrecord_writer_test
