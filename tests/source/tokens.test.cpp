// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/tokens.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"
#include "support/token_bytes.hpp"

#include <penstock/core/destination.hpp>
#include <penstock/core/document_rows.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

static_assert(penstock::indexed_source<
              penstock::token_source<std::uint16_t, penstock::token_windows, penstock::mapped_file>>);

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using penstock_test::contains;
using penstock_test::megatron;
using penstock_test::put;

namespace tokens_test {

using token = std::uint16_t;
using windows = ps::token_windows;

static_assert(
    ps::static_array_expression<ps::token_source<token, ps::token_window<8>, ps::mapped_file>::element>);
static_assert(ps::array_expression<ps::token_source<token, windows, ps::file>::element>);
static_assert(ps::shape_class_of<ps::token_source<token, ps::token_window<8>, ps::file>::element> ==
              ps::shape_class::fixed);

template <class T = token>
byte_vector counting(std::uint64_t first, std::uint64_t count) {
  byte_vector bytes;
  for (std::uint64_t i = 0; i < count; ++i) put<T>(bytes, first + i);
  return bytes;
}
byte_vector llmc(const byte_vector& tokens, std::uint32_t count, std::uint32_t magic = 20240520,
                 std::uint32_t version = 1) {
  byte_vector bytes;
  for (const std::uint32_t word : {magic, version, count}) put<std::uint32_t>(bytes, word);
  bytes.resize(1024);
  return codec_test::joined(bytes, tokens);
}
void write(const std::filesystem::path& path, const byte_vector& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}
std::string written(const std::filesystem::path& path, const byte_vector& bytes) {
  write(path, bytes);
  return path.string();
}
/// All windows of a source; checks that written and viewed values are equal.
template <class Source>
auto all_of(const Source& source) {
  using T = typename Source::element::value_type;
  std::vector<std::vector<T>> all;
  bool same = true;
  const auto reader = source.connect();
  typename Source::reader::worker worker;
  for (std::uint64_t i = 0; i < source.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& window) {
      std::vector<T> values(static_cast<std::size_t>(window.shape().elements()));
      window.write_to(ps::destination(values.data(), window.shape()));
      const auto view = window.finish();
      same = same && std::vector<T>(view.begin(), view.end()) == values;
      all.push_back(values);
    });
  REQUIRE(same);
  return all;
}
/// The windows by definition: runs of consecutive numbers.
std::vector<std::vector<token>> expected(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& pieces,
                                         std::uint64_t span, std::uint64_t stride) {
  std::vector<std::vector<token>> all;
  for (const auto& [first, count] : pieces)
    for (std::uint64_t at = 0; at + span <= count; at += stride) {
      std::vector<token> window;
      for (std::uint64_t i = 0; i < span; ++i) window.push_back(static_cast<token>(first + at + i));
      all.push_back(window);
    }
  return all;
}
codec_test::thrown refusal(const byte_vector& bin, const byte_vector* idx = nullptr, bool header = true) {
  ps::memory_files memory;
  memory.add("bad.bin", bin);
  if (idx != nullptr) memory.add("bad.idx", *idx);
  const auto thrown = caught([&] {
    if (idx != nullptr)
      static_cast<void>(ps::megatron_tokens<token>(memory, windows{.length = 1}));
    else if (header)
      static_cast<void>(ps::llmc_tokens<token>(memory, windows{.length = 1}));
    else
      static_cast<void>(ps::raw_tokens<token>(memory, windows{.length = 1}));
  });
  if (!thrown.line.empty()) CHECK_THAT(thrown.line, contains("bad.") && contains("offset"));
  return thrown;
}

}  // namespace tokens_test

TEST_CASE("source/tokens: windows of every length and stride match the definition") {
  using namespace tokens_test;
  const penstock_test::temp_dir dir;
  const std::pair<std::uint64_t, std::uint64_t> pieces[] = {{0, 17}, {100, 0}, {200, 3}, {300, 40}};
  std::vector<std::string> raw, with_header;
  ps::memory_files memory;
  for (const auto& [first, count] : pieces) {
    const byte_vector tokens = counting(first, count);
    raw.push_back(written(dir / ("raw" + std::to_string(first)), tokens));
    with_header.push_back(
        written(dir / ("llmc" + std::to_string(first)), llmc(tokens, static_cast<std::uint32_t>(count))));
    memory.add(std::to_string(first), tokens);
  }
  const std::string pattern = (dir / "raw{0,100,200,300}").string();
  for (const std::uint64_t length : {1u, 2u, 5u, 16u, 39u})
    for (const std::uint64_t targets : {0u, 1u, 3u})
      for (const std::uint64_t stride : {0u, 1u, 3u, 50u}) {
        if (length + targets > 40) continue;
        CAPTURE(length, targets, stride);
        const windows chosen{length, targets, stride};
        const auto want =
            expected({std::begin(pieces), std::end(pieces)}, length + targets, stride == 0 ? length : stride);
        const auto source = ps::raw_tokens<token>(pattern, chosen);
        REQUIRE(source.size() == want.size());
        REQUIRE(all_of(source) == want);
        REQUIRE(all_of(ps::raw_tokens<token>(ps::file(raw), chosen)) == want);
        REQUIRE(all_of(ps::raw_tokens<token>(memory, chosen)) == want);
        REQUIRE(all_of(ps::llmc_tokens<token>(ps::file(with_header), chosen)) == want);
        REQUIRE(all_of(ps::llmc_tokens<token>(ps::mapped_file(with_header), chosen)) == want);
      }
  const auto known = ps::raw_tokens<token>(pattern, ps::token_window<5>{.stride = 2});
  CHECK(all_of(known) == expected({std::begin(pieces), std::end(pieces)}, 6, 2));
  CHECK(*known.starts() == std::vector<std::uint64_t>{0, 6, 24});
  CHECK(known.tokens() == 60);
  CHECK_THAT(known.describe(),
             contains("4 files, 60 tokens") && contains("24 windows of 5 + 1 tokens, 2 apart"));
  CHECK_THAT(known.connect().key(7), contains("raw300:2"));
  CHECK(known.connect().bytes_per_sample() == 12);
  known.connect().ranges(7, penstock::detail::hint_sink{});
  known.connect().ranges(1'000'000, penstock::detail::hint_sink{});
  CHECK(caught([&] {
          ps::token_source<token, ps::token_window<5>, ps::mapped_file>::reader::worker worker;
          known.connect().evaluate({0, 24}, worker, [](const auto&) {});
        }).code == ps::errc::argument);
}

TEST_CASE("source/tokens: tokens of four bytes, from all three formats") {
  using namespace tokens_test;
  const penstock_test::temp_dir dir;
  const byte_vector tokens = counting<std::uint32_t>(100'000, 9);
  const std::vector<std::vector<std::uint32_t>> want = {{100'000, 100'001, 100'002},
                                                        {100'002, 100'003, 100'004},
                                                        {100'004, 100'005, 100'006},
                                                        {100'006, 100'007, 100'008}};
  const windows chosen{.length = 2};
  CHECK(all_of(ps::raw_tokens<std::uint32_t>(written(dir / "raw", tokens), chosen)) == want);
  CHECK(all_of(ps::llmc_tokens<std::uint32_t>(written(dir / "llmc", llmc(tokens, 9, 20240801, 7)), chosen)) ==
        want);
  write(dir / "m.bin", tokens);
  write(dir / "m.idx", megatron({{4, 5}}, 4, 4));
  CHECK(all_of(ps::megatron_tokens<std::uint32_t>((dir / "m").string(), chosen)) == want);
  CHECK(ps::megatron_tokens<std::int32_t>((dir / "m.bin").string(), chosen).size() == 4);
}

TEST_CASE("source/tokens: on request no window crosses the end of a document") {
  using namespace tokens_test;
  const penstock_test::temp_dir dir;
  ps::rng random(3, 1, 4);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces, wholes;
    for (const char* const name : {"a", "b"}) {
      std::vector<std::vector<std::uint32_t>> documents(random.below(8) + 1);
      std::uint64_t count = 0;
      for (auto& document : documents) {
        std::uint64_t size = 0;
        for (std::uint64_t n = random.below(4); n != 0; --n) {
          document.push_back(static_cast<std::uint32_t>(random.below(12)));
          size += document.back();
        }
        pieces.emplace_back(count, size);
        count += size;
      }
      wholes.emplace_back(0, count);
      write(dir / (std::string(name) + ".bin"), counting(0, count));
      byte_vector index = megatron(documents);
      if (round % 3 == 0) {  // modes, as in multimodal datasets
        std::size_t sequences = 0;
        for (const auto& document : documents) sequences += document.size();
        index.resize(index.size() + sequences);
      }
      write(dir / (std::string(name) + ".idx"), index);
    }
    const std::string pattern = (dir / "{a,b}").string();
    const std::uint64_t length = 1 + random.below(5), targets = random.below(3), stride = random.below(6);
    const std::uint64_t step = stride == 0 ? length : stride;
    for (const bool within : {false, true}) {
      const auto want = expected(within ? pieces : wholes, length + targets, step);
      if (want.empty()) {
        CHECK(caught([&] {
                static_cast<void>(
                    ps::megatron_tokens<token>(pattern, windows{length, targets, stride, within}));
              }).code == ps::errc::argument);
        continue;
      }
      const auto source = ps::megatron_tokens<token>(pattern, windows{length, targets, stride, within});
      REQUIRE(all_of(source) == want);
      // also in any order
      const auto reader = source.connect();
      decltype(source)::reader::worker worker;
      for (int i = 0; i < 30; ++i) {
        const std::uint64_t index = random.below(source.size());
        reader.evaluate({0, index}, worker, [&](const auto& window) {
          REQUIRE(window.finish().data()[0] == want[static_cast<std::size_t>(index)][0]);
        });
      }
    }
  }
}

TEST_CASE("source/tokens: a trillion windows cost no table") {
  using namespace tokens_test;
  const penstock_test::temp_dir dir;
  const std::uint64_t each = std::uint64_t{1} << 30;  // 2 GiB of tokens in a sparse file
  const std::string path = written(dir / "sparse", counting(7, 3));
  std::filesystem::resize_file(path, each * sizeof(token));
  const ps::file where(std::vector<std::string>(1000, path));
  const windows chosen{.length = 4, .stride = 1};
  const auto before = penstock_test::allocations;
  const auto source = ps::raw_tokens<token>(where, chosen);
  CHECK(penstock_test::allocations - before < 20'000);  // a few per file
  CHECK(source.size() == 1000 * (each - 4));
  CHECK(source.size() > 1'000'000'000'000);
  const auto reader = source.connect();
  decltype(source)::reader::worker worker;
  std::vector<token> window(5);
  for (const std::uint64_t file : {0u, 1u, 999u}) {
    reader.evaluate({0, file * (each - 4)}, worker,
                    [&](const auto& w) { w.write_to(ps::destination(window.data(), w.shape())); });
    CHECK(window == std::vector<token>{7, 8, 9, 0, 0});
    reader.evaluate({0, (file + 1) * (each - 4) - 1}, worker, [&](const auto& w) {
      CHECK(w.offset() == (each - 5) * sizeof(token));
      w.write_to(ps::destination(window.data(), w.shape()));
    });
    CHECK(window == std::vector<token>(5));
  }
}

TEST_CASE("source/tokens: rows land in batches, in a shuffled order and with any number of workers") {
  using namespace tokens_test;
  const penstock_test::temp_dir dir;
  for (const std::uint64_t first : {0u, 1000u}) write(dir / std::to_string(first), counting(first, 161));
  const std::string pattern = (dir / "{0,1000}").string();
  const auto known = ps::raw_tokens<token>(pattern, ps::token_window<8>{});
  const auto given = ps::raw_tokens<token>(pattern, windows{.length = 8});
  REQUIRE(known.size() == 40);
  std::vector<token> in_order;
  for (const auto& row : expected({{0, 161}, {1000, 161}}, 9, 8))
    in_order.insert(in_order.end(), row.begin(), row.end());
  CHECK(penstock_test::values_of(known | ps::batch(8)) == in_order);
  CHECK(penstock_test::values_of(given | ps::batch(8), 3) == in_order);
  const auto shuffled = penstock_test::values_of(known | ps::shuffle(ps::seed(5)) | ps::batch(8), 3);
  CHECK(shuffled == penstock_test::values_of(given | ps::shuffle(ps::seed(5)) | ps::batch(8)));
  CHECK(shuffled != in_order);
}

TEST_CASE("source/tokens: windows have the numbers of their documents, from Megatron's index") {
  using namespace tokens_test;
  const penstock_test::temp_dir dir;
  // documents of 3 + 2, 0, 1 and 10 tokens, and in the second file of 4 and 9
  write(dir / "a.bin", counting(0, 16));
  write(dir / "a.idx", megatron({{3, 2}, {}, {1}, {10}}));
  write(dir / "b.bin", counting(100, 13));
  write(dir / "b.idx", megatron({{4}, {9}}));
  const std::string pattern = (dir / "{a,b}").string();
  using ids = std::vector<std::int32_t>;
  const auto source = ps::megatron_tokens<token>(pattern, ps::with_document_ids{ps::token_window<4>{}});
  const auto loader = source | ps::batch(6);
  auto run = loader.open();
  auto b = run.next();
  REQUIRE(b);
  const auto numbers = get<"document_ids">(*b);
  const auto tokens = get<"tokens">(*b);
  CHECK(numbers.shape() == ps::extents(6, 5));
  CHECK(ids(numbers.flat().begin(), numbers.flat().end()) == ids{0, 0, 0, 0, 0, /**/ 0, 1, 2, 2, 2,
                                                                 0, 0, 0, 0, 0, /**/ 0, 0, 0, 0, 1,
                                                                 0, 0, 0, 0, 0, /**/ 0, 0, 0, 0, 0});
  CHECK(tokens(1, 0) == 4);
  CHECK(tokens(3, 0) == 100);
  const ps::window_documents documents = ps::document_rows_of(numbers);
  CHECK(documents.cu_seqlens() == ids{0, 4, 5, 6, 8, 12, 16, 20, 24});
  const auto labels = documents.labels(tokens);
  CHECK(std::vector<std::int64_t>(labels.begin(), labels.begin() + 8) ==
        std::vector<std::int64_t>{1, 2, 3, 4, -100, -100, 7, 8});
  CHECK(labels[3 * 4 + 3] == -100);  // the fourth window's last input ends a document
  CHECK(labels[4 * 4 + 3] == 108);

  // any lengths, against the definition
  ps::rng random(3, 9, 4);
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    std::vector<std::vector<std::uint32_t>> lengths(random.below(9) + 1);
    std::vector<std::int32_t> owner;
    for (std::size_t d = 0; d < lengths.size(); ++d) {
      for (auto n = random.below(3); n != 0; --n) {
        lengths[d].push_back(static_cast<std::uint32_t>(random.below(12)));
        owner.insert(owner.end(), lengths[d].back(), static_cast<std::int32_t>(d));
      }
    }
    const bool within = round % 2 == 0;
    ps::memory_files memory;
    memory.add("x.bin", counting(0, owner.size())).add("x.idx", megatron(lengths));
    const auto made = [&] {
      return ps::megatron_tokens<token>(
          memory, ps::with_document_ids{windows{1 + static_cast<std::uint64_t>(round) % 6, 1, 2, within}});
    };
    if (!caught([&] { static_cast<void>(made()); }).line.empty()) continue;  // all are too short
    const auto some = made();
    const auto reader = some.connect();
    decltype(some)::reader::worker worker;
    for (std::uint64_t i = 0; i < some.size(); ++i)
      reader.evaluate({0, i}, worker, [&](const auto& window) {
        const auto at = get<"tokens">(window).finish();
        const auto got = get<"document_ids">(window).finish();
        REQUIRE(got.size() == at.size());
        std::int32_t number = 0;
        for (std::size_t k = 0; k < got.size(); ++k) {
          if (k != 0 && owner[at.data()[k]] != owner[at.data()[k - 1]]) ++number;
          REQUIRE(got.data()[k] == number);
        }
        if (within) REQUIRE(number == 0);
      });
  }
  CHECK_THAT(caught([&] {
               static_cast<void>(ps::raw_tokens<token>((dir / "a.bin").string(),
                                                       ps::with_document_ids{ps::token_window<4>{}}));
             }).line,
             contains("document_rows(tokens, eot)"));
}

TEST_CASE("source/tokens: a batch's documents are found by the token that ends each") {
  using namespace tokens_test;
  byte_vector tokens;
  // documents of 1 to 7 tokens, of which the last is 0
  for (std::uint64_t n = 0; n < 200; ++n) {
    for (std::uint64_t i = 1; i < n % 7 + 1; ++i) put<token>(tokens, 100 * n + i);
    put<token>(tokens, 0);
  }
  const auto count = static_cast<std::uint32_t>(tokens.size() / 2);
  ps::memory_files raw, with_header;
  raw.add("x", tokens);
  with_header.add("x", llmc(tokens, count));
  const auto look_at = [](const auto& source) {
    std::uint64_t rows = 0;
    auto run = (source | ps::shuffle(ps::seed(3)) | ps::batch(7)).open();
    for (auto epoch : run.epochs(1))
      for (auto&& b : epoch) {
        const ps::window_documents found = ps::document_rows(b.values(), 0);
        const auto labels = found.labels(b.values());
        const auto positions = found.position_ids();
        REQUIRE(found.row_count() == b.size());
        REQUIRE(found.capacity() == 16);
        for (std::size_t row = 0; row < b.size(); ++row, ++rows) {
          std::int32_t position = 0;
          for (std::size_t i = 0; i < 16; ++i) {
            const token here = b.values()(row, i);
            REQUIRE(positions[row * 16 + i] == position);
            REQUIRE(labels[row * 16 + i] == (here == 0 ? -100 : std::int64_t{b.values()(row, i + 1)}));
            position = here == 0 ? 0 : position + 1;
          }
        }
      }
    return rows;
  };
  const std::uint64_t rows = (count - 17) / 16 + 1;
  CHECK(look_at(ps::raw_tokens<token>(raw, windows{.length = 16})) == rows);
  CHECK(look_at(ps::llmc_tokens<token>(with_header, ps::token_window<16>{})) == rows);
}

TEST_CASE("source/tokens: evaluating allocates nothing, and views point into the mapping") {
  using namespace tokens_test;
  const penstock_test::temp_dir dir;
  const std::string path = written(dir / "x.bin", counting(0, 1000));
  write(dir / "x.idx", megatron({{100, 200}, {3}, {697}}));
  const auto source = ps::megatron_tokens<token>(path, ps::token_window<16>{.within_documents = true});
  const auto reader = source.connect();
  decltype(source)::reader::worker worker;
  const token* first = nullptr;
  std::uint64_t sum = 0;
  const auto all = [&] {
    for (std::uint64_t i = source.size(); i-- > 0;)
      reader.evaluate({0, i}, worker, [&](const auto& window) {
        first = window.finish().data();
        sum += first[0];
      });
  };
  all();
  CHECK(penstock_test::allocations_of(all) == 0);
  if (std::endian::native == std::endian::little) {  // otherwise the bytes are swapped in the scratch
    CHECK(worker.scratch.capacity() == 0);
    reader.evaluate({0, 1}, worker, [&](const auto& window) { CHECK(window.finish().data() == first + 16); });
  }
}

TEST_CASE("source/tokens: false headers are errors that name file and offset") {
  using namespace tokens_test;
  const byte_vector tokens = counting(0, 50);
  CHECK(refusal(llmc(tokens, 50)).line.empty());
  for (const std::uint32_t count : {0u, 49u, 51u, 0x80000032u, 0xffffffffu}) {
    const auto error = refusal(llmc(tokens, count));
    CHECK(error.code == ps::errc::format);
    CHECK_THAT(error.line, contains(std::to_string(count) + " tokens") && contains("but 100 follow") &&
                               contains("offset 8"));
  }
  CHECK_THAT(refusal(llmc(tokens, 50, 20240801, 7)).line, contains("ask for std::uint32_t"));
  CHECK_THAT(refusal(llmc(tokens, 50, 20240522, 1)).line, contains("multiple-choice"));
  CHECK_THAT(refusal(llmc(tokens, 50, 1234)).line, contains("begins with 1234") && contains("raw_tokens"));
  CHECK_THAT(refusal(llmc(tokens, 50, 20240520, 2)).line, contains("version 2") && contains("offset 4"));
  const byte_vector good = llmc(tokens, 50);
  for (std::size_t size = 0; size < good.size(); ++size)
    REQUIRE(refusal(byte_vector(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))).code ==
            ps::errc::format);
  CHECK(refusal(codec_test::joined(good, {std::byte{}})).code == ps::errc::format);

  const auto odd = refusal(codec_test::joined(tokens, {std::byte{}}), nullptr, false);
  CHECK(odd.code == ps::errc::format);
  CHECK_THAT(odd.line, contains("101 bytes") && contains("2-byte tokens") && contains("offset 100"));
  CHECK_THAT(refusal(good, nullptr, false).line, contains("llmc_tokens"));
  CHECK_THAT(refusal(megatron({{3, 5}}), nullptr, false).line, contains("megatron_tokens"));
  CHECK_THAT(refusal(codec_test::to_vector(std::string_view("\x93NUMPY\1\0", 8)), nullptr, false).line,
             contains("npy file") && contains("tofile"));
}

TEST_CASE("source/tokens: a false Megatron index is an error that names file and offset") {
  using namespace tokens_test;
  const byte_vector tokens = counting(0, 15);
  const byte_vector good = megatron({{3, 5}, {}, {7}});
  REQUIRE(refusal(tokens, &good).line.empty());
  for (std::size_t size = 0; size < good.size(); ++size) {
    const byte_vector cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE(refusal(tokens, &cut).code == ps::errc::format);
  }
  const auto changed = [&](std::size_t at, std::uint8_t value) {
    byte_vector bad = good;
    bad[at] = std::byte{value};
    return refusal(tokens, &bad);
  };
  CHECK_THAT(changed(0, 'm').line, contains("MMIDIDX") && contains("offset 0"));
  CHECK_THAT(changed(9, 2).line, contains("version 2") && contains("offset 9"));
  CHECK_THAT(changed(17, 4).line, contains("int32") && contains("offset 17"));
  CHECK_THAT(changed(17, 7).line, contains("float32"));
  CHECK_THAT(changed(17, 99).line, contains("unknown"));
  CHECK_THAT(changed(18, 4).line, contains("4 sequences"));
  CHECK(changed(25, 0x80).code == ps::errc::format);  // products that wrap around
  CHECK(changed(33, 0x80).code == ps::errc::format);
  CHECK_THAT(changed(34, 4).line, contains("sequence 1 does not begin"));
  CHECK(changed(37, 0x80).code == ps::errc::format);  // a negative length
  CHECK(changed(46, 2).code == ps::errc::format);
  CHECK_THAT(changed(70, 1).line, contains("from 0 to"));
  CHECK_THAT(changed(78, 3).line, contains("do not ascend"));
  CHECK_THAT(changed(94, 2).line, contains("from 0 to"));
  const auto fewer = refusal(counting(0, 14), &good);
  CHECK_THAT(fewer.line, contains("15 tokens") && contains("bad.bin"));
  CHECK(refusal(counting(0, 16), &good).code == ps::errc::format);
  CHECK(refusal(codec_test::joined(tokens, {std::byte{}}), &good).code == ps::errc::format);
  ps::rng random(5, 5, 5);
  for (int round = 0; round < 400; ++round) {
    byte_vector noise = good;
    for (auto n = 1 + random.below(4); n > 0; --n)
      noise[9 + random.below(noise.size() - 9)] = static_cast<std::byte>(random());
    static_cast<void>(refusal(tokens, &noise));
  }
}

TEST_CASE("source/tokens: impossible options are refused with a reason") {
  using namespace tokens_test;
  const penstock_test::temp_dir dir;
  const std::string path = written(dir / "x.bin", counting(0, 10));
  const auto reason = [&](windows chosen) {
    return caught([&] { static_cast<void>(ps::raw_tokens<token>(path, chosen)); });
  };
  CHECK_THAT(reason({.length = 10}).line,
             contains("the 11 tokens of a window") && contains("the longest has 10"));
  CHECK(reason({.length = 10}).code == ps::errc::argument);
  CHECK_THAT(reason({.length = 0}).line, contains("at least one token"));
  CHECK(reason({.length = ~std::uint64_t{0}}).code == ps::errc::argument);
  CHECK(reason({.length = 1, .targets = ~std::uint64_t{0}}).code == ps::errc::argument);
  CHECK_THAT(reason({.length = 5, .targets = std::uint64_t{1} << 41}).line,
             contains("windows of 5 + 2199023255552 tokens are too long"));
  CHECK(reason({.length = 9, .stride = ~std::uint64_t{0}}).line.empty());
  CHECK_THAT(reason({.length = 1, .within_documents = true}).line, contains("where documents end"));
  CHECK(caught([&] { static_cast<void>(ps::raw_tokens<token>((dir / "no").string(), windows{})); }).code ==
        ps::errc::io);
  const auto alone = caught([&] { static_cast<void>(ps::megatron_tokens<token>(path, windows{})); });
  CHECK(alone.code == ps::errc::io);
  CHECK_THAT(alone.line, contains("x.idx"));
  CHECK_THAT(caught([&] {
               static_cast<void>(ps::megatron_tokens<token>(ps::file({path.c_str()}), windows{}));
             }).line,
             contains("names no .idx"));
}

TEST_CASE("source/tokens: a file that changes after the plan was made is noticed, before or during a run") {
  using namespace tokens_test;
  const penstock_test::temp_dir dir;
  const std::string path = written(dir / "x.bin", counting(0, 100));
  const auto source = ps::raw_tokens<token>(ps::file({path.c_str()}), windows{.length = 8});
  const auto same = ps::raw_tokens<token>(ps::file({path.c_str()}), windows{.length = 8});
  CHECK(source.fingerprint() == same.fingerprint());
  CHECK(source.fingerprint() !=
        ps::raw_tokens<token>(ps::file({path.c_str()}), windows{.length = 8, .stride = 4}).fingerprint());
  // equal rows, however they are divided into files
  CHECK(source.fingerprint() ==
        ps::raw_tokens<token>(ps::file({path.c_str()}), windows{.length = 7, .targets = 2, .stride = 8})
            .fingerprint());
  write(dir / "x.bin", counting(1, 101));
  decltype(source)::reader::worker worker;
  const auto error = caught([&] { source.connect().evaluate({0, 0}, worker, [](const auto&) {}); });
  CHECK(error.code == ps::errc::io);
  CHECK_THAT(error.line, contains("was changed") && contains("x.bin"));
  CHECK(source.fingerprint() !=
        ps::raw_tokens<token>(ps::file({path.c_str()}), windows{.length = 8}).fingerprint());
}

TEST_CASE("source/tokens: an error of a later stage carries file and offset") {
  using namespace tokens_test;
  const penstock_test::temp_dir dir;
  const auto source = ps::raw_tokens<token>(written(dir / "x.bin", counting(0, 100)), windows{.length = 8});
  decltype(source)::reader::worker worker;
  const auto error = caught([&] {
    source.connect().evaluate({0, 2}, worker, [](const auto&) { throw ps::error(ps::errc::format, "no"); });
  });
  CHECK_THAT(error.line, contains("x.bin") && contains("offset 32"));
}

namespace tokens_test {

/// Calls `use` with the first token of each window.
template <class Source, class Use>
void each_first(const Source& source, Use use) {
  const auto reader = source.connect();
  typename Source::reader::worker worker;
  for (std::uint64_t i = 0; i < source.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& window) { use(window.finish().data()[0]); });
}

template <class T>
void check_real(const std::string& prefix) {
  const byte_vector idx = codec_test::file_bytes(prefix + ".idx");
  const byte_vector bin = codec_test::file_bytes(prefix + ".bin");
  const auto number = [&](std::uint64_t at) {
    return ps::detail::load_little<std::uint64_t>(idx.data() + static_cast<std::size_t>(at));
  };
  const auto whole = ps::megatron_tokens<T>(prefix, windows{.length = 1, .targets = 0});
  REQUIRE(whole.tokens() == bin.size() / sizeof(T));
  REQUIRE(whole.size() == whole.tokens());
  byte_vector together;
  each_first(whole, [&](T first) { put<T>(together, static_cast<std::uint64_t>(first)); });
  REQUIRE(together == bin);
  // pairs within documents: the number of tokens minus one per non-empty document
  const auto pairs = ps::megatron_tokens<T>(prefix, windows{.length = 1, .within_documents = true});
  std::uint64_t documents = 0;
  const std::uint64_t offsets = 34 + 4 * number(18), bounds = offsets + 8 * number(18);
  REQUIRE(bounds + 8 * number(26) == idx.size());
  for (std::uint64_t d = 0; d + 1 < number(26); ++d)
    documents += number(bounds + 8 * d) != number(bounds + 8 * d + 8) ? 1u : 0u;
  REQUIRE(documents > 0);
  CHECK(pairs.size() == whole.tokens() - documents);
  // these documents end in the token 50256, which can then be a target only
  if (!prefix.ends_with("text_document")) return;
  std::uint64_t ends = 0;
  each_first(pairs, [&](T first) { ends += first == 50256 ? 1u : 0u; });
  CHECK(ends == 0);
}

}  // namespace tokens_test

TEST_CASE("source/tokens: real datasets of Megatron") {
  using namespace tokens_test;
  const auto folder = penstock_test::test_data("tokens/megatron");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no tokens/megatron: real datasets are not read");
    return;
  }
  for (const char* const name : {"meg-gpt2-openwebtext_text_document", "ag_news_prompt_inputs_document",
                                 "ag_news_prompt_targets_document"}) {
    const std::string prefix = (*folder / name).string();
    if (!std::filesystem::exists(prefix + ".bin") || !std::filesystem::exists(prefix + ".idx")) continue;
    CAPTURE(name);
    if (codec_test::file_bytes(prefix + ".idx").at(17) == std::byte{8})
      check_real<std::uint16_t>(prefix);
    else
      check_real<std::int32_t>(prefix);
  }
}
