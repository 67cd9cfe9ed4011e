// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/source/megatron_documents.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/pack.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/faults.hpp"
#include "support/megatron_files.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"
#include "support/token_bytes.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using codec_test::caught;
using penstock_test::contains;
using penstock_test::megatron;
using penstock_test::put;

static_assert(ps::indexed_source<ps::megatron_document_source<std::uint16_t, ps::mapped_file>>);
static_assert(ps::array_expression<ps::megatron_document_source<std::int32_t, ps::file>::element>);
static_assert(ps::sample_values<ps::document_lengths>);

namespace documents_test {

using mapped_source = ps::megatron_document_source<std::int32_t, ps::mapped_file>;
static_assert(ps::looks_ahead<decltype(std::declval<const mapped_source&>().connect())>);

using token = std::uint16_t;
using sequences = std::vector<std::vector<std::uint32_t>>;  // of the sequences of each document

template <class T = token>
byte_vector counting(std::uint64_t first, std::uint64_t count) {
  byte_vector bytes;
  for (std::uint64_t i = 0; i < count; ++i) put<T>(bytes, first + i);
  return bytes;
}
std::uint64_t sum(const sequences& documents) {
  std::uint64_t all = 0;
  for (const auto& document : documents)
    for (const std::uint64_t length : document) all += length;
  return all;
}
/// A dataset whose tokens are consecutive numbers.
ps::memory_files made(const sequences& documents, std::uint64_t first = 0) {
  ps::memory_files memory;
  memory.add("x.bin", counting(first, sum(documents))).add("x.idx", megatron(documents));
  return memory;
}
void write(const std::filesystem::path& path, const byte_vector& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}
/// All documents; checks that written and viewed tokens are equal, and as many as `lengths()` says.
template <class Source>
auto all_of(const Source& source) {
  using T = typename Source::element::value_type;
  std::vector<std::vector<T>> all;
  bool same = true;
  const auto reader = source.connect();
  const auto lengths = source.lengths();
  typename Source::reader::worker worker;
  for (std::uint64_t i = 0; i < source.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& document) {
      std::vector<T> values(static_cast<std::size_t>(document.shape().elements()));
      document.write_to(ps::destination(values.data(), document.shape()));
      const auto view = document.finish();
      same = same && std::vector<T>(view.begin(), view.end()) == values && values.size() == lengths[i];
      all.push_back(values);
    });
  CHECK(same);
  CHECK(lengths.size() == source.size());
  return all;
}

TEST_CASE("source/megatron_documents: each document, of one sequence, several or none") {
  const auto source = ps::megatron_documents<token>(made({{3, 2}, {}, {1}, {0}, {4, 0, 1}}, 10));
  const std::vector<std::vector<token>> expected{{10, 11, 12, 13, 14}, {}, {15}, {}, {16, 17, 18, 19, 20}};
  CHECK(all_of(source) == expected);
  CHECK(source.tokens() == 11);
  CHECK(source.describe() == "megatron_documents(1 files, 11 tokens): 5 documents");
  CHECK(source.connect().key(2) == "x.bin:2");
  ps::memory_files wide;
  wide.add("x.bin", counting<std::int32_t>(70'000, 3)).add("x.idx", megatron({{2}, {1}}, 4, 4));
  CHECK(all_of(ps::megatron_documents<std::int32_t>(wide)) ==
        std::vector<std::vector<std::int32_t>>{{70'000, 70'001}, {70'002}});
  // a dataset of empty documents alone
  CHECK(all_of(ps::megatron_documents<token>(made({{}, {0}}))) == std::vector<std::vector<token>>(2));
}

TEST_CASE("source/megatron_documents: several files are one dataset, from any storage") {
  const penstock_test::temp_dir dir;
  write(dir / "a.bin", counting(0, 7));
  write(dir / "a.idx", megatron({{3}, {4}}));
  write(dir / "b.bin", counting(7, 0));
  write(dir / "b.idx", megatron({}));
  write(dir / "c.bin", counting(7, 3));
  write(dir / "c.idx", megatron({{}, {1, 2}}));
  const std::string all = (dir / "{a,b,c}").string();
  const auto source = ps::megatron_documents<token>(all);
  const std::vector<std::vector<token>> expected{{0, 1, 2}, {3, 4, 5, 6}, {}, {7, 8, 9}};
  CHECK(all_of(source) == expected);
  CHECK(source.connect().key(3) == (dir / "c.bin").string() + ":1");
  CHECK(source.lengths().path() == (dir / "a.idx").string());
  const auto read = ps::megatron_documents<token>(ps::file(ps::detail::megatron_names(all)));
  CHECK(all_of(read) == expected);
  CHECK(read.fingerprint() == source.fingerprint());
  CHECK(read.lengths().fingerprint() == source.lengths().fingerprint());
}

TEST_CASE("source/megatron_documents: the fingerprint knows tokens, lengths and bounds") {
  const auto of = [](const sequences& documents, std::uint64_t first = 0) {
    return ps::megatron_documents<token>(made(documents, first)).fingerprint();
  };
  CHECK(of({{3}, {2}}) == of({{3}, {2}}));
  CHECK(of({{3}, {2}}) != of({{2}, {3}}));
  CHECK(of({{3}, {2}}) != of({{3, 2}}));
  CHECK(of({{3}, {2}}) != of({{3}, {2}}, 1));
}

TEST_CASE("source/megatron_documents: what Megatron wrote") {
  ps::memory_files memory;
  byte_vector idx;
  for (const char* const name : {"made.bin", "made.idx"}) {
    idx = codec_test::to_vector(penstock_test::megatron_oracle(name));
    memory.add(name, idx);
  }
  const auto source = ps::megatron_documents<token>(memory);
  // three sequences and one, in turn; each token is the number of its place
  const auto length = [&](std::size_t sequence) {
    return ps::detail::load_little<std::uint32_t>(idx.data() + 34 + 4 * sequence);
  };
  std::size_t sequence = 0;
  token next = 0;
  for (const auto& document : all_of(source)) {
    std::uint64_t tokens = 0;
    const bool even = sequence % 4 == 0;
    for (std::size_t i = 0; i < (even ? 3u : 1u); ++i) tokens += length(sequence++);
    REQUIRE(document.size() == tokens);
    for (const token one : document) REQUIRE(one == next++);
  }
  CHECK(next == source.tokens());
  CHECK(source.size() >= 20);
}

TEST_CASE("source/megatron_documents: real datasets of Megatron") {
  const auto folder = penstock_test::test_data("tokens/megatron");
  if (!folder) {
    WARN("PENSTOCK_TEST_DATA has no tokens/megatron: real datasets are not read");
    return;
  }
  const std::string prefix = (*folder / "meg-gpt2-openwebtext_text_document").string();
  const byte_vector bin = codec_test::file_bytes(prefix + ".bin");
  const auto all = all_of(ps::megatron_documents<token>(prefix + ".idx"));
  byte_vector together;
  std::size_t ends = 0;
  for (const auto& document : all) {
    for (const token one : document) put<token>(together, one);
    REQUIRE(!document.empty());
    // the end-of-text token is the last of its document, and nowhere else
    for (const token one : document) ends += one == 4999 ? 1u : 0u;
    REQUIRE(document.back() == 4999);
  }
  CHECK(ends == all.size());
  CHECK(together == bin);
}

TEST_CASE("source/megatron_documents: lengths are what pack, batch_by and subset take") {
  sequences documents;
  for (std::uint32_t i = 0; i < 400; ++i) documents.push_back({i * 37 % 90, i % 3});
  const auto docs = ps::megatron_documents<token>(made(documents, 1));
  std::map<token, int> seen;
  std::size_t rows = 0;
  for (std::uint64_t rank = 0; rank < 2; ++rank)
    for (auto&& b : (docs | ps::shuffle(ps::seed(7)) | ps::shard(rank, 2) |
                     ps::pack(docs.lengths(), 64, {.overlong = ps::overlong::split}) | ps::batch(8))
                        .epoch(0)) {
      rows += b.size();
      const auto view = b.values();
      const auto ids = view.document_ids();
      for (std::size_t i = 0; i < ids.size(); ++i)
        if (ids[i] >= 0) ++seen[view.flat()[i]];
    }
  CHECK(rows > docs.tokens() / 64);
  CHECK(seen.size() == docs.tokens());
  for (const auto& [one, times] : seen) REQUIRE(times == 1);

  std::uint64_t samples = 0;
  for (auto&& b : (docs | ps::batch_by(docs.lengths(), 200, ps::ragged)).epoch(0)) {
    CHECK(b.values().values().size() <= 200);
    samples += b.size();
  }
  CHECK(samples == docs.size());

  std::uint64_t some = 0;
  for (std::uint64_t i = 0; i < docs.size(); ++i) some += docs.lengths()[i] > 50 ? 1u : 0u;
  const auto longer = docs | ps::subset(docs.lengths(), [](std::uint64_t n) { return n > 50; });
  std::uint64_t kept = 0;
  for (auto&& b : (longer | ps::batch(1, ps::ragged)).epoch(0)) kept += b.values()[0].size() > 50 ? 1u : 0u;
  CHECK(kept == some);

  const auto other = ps::megatron_documents<token>(made({{5}, {6}}));
  const auto wrong = caught([&] { (void)(docs | ps::pack(other.lengths(), 64) | ps::batch(8)).open(); });
  CHECK_THAT(wrong.line, contains("pack") && contains("document lengths"));
}

TEST_CASE("source/megatron_documents: damaged files are errors with file and offset") {
  const auto refusal = [](const byte_vector& bin, const byte_vector& idx) {
    ps::memory_files memory;
    memory.add("x.bin", bin).add("x.idx", idx);
    return caught([&] { static_cast<void>(ps::megatron_documents<token>(memory)); }).line;
  };
  const byte_vector good = megatron({{3}, {2}});
  CHECK(refusal(counting(0, 5), good).empty());
  CHECK_THAT(refusal(counting(0, 6), good), contains("x.bin") && contains("offset 10") && contains("12"));
  CHECK_THAT(refusal(counting(0, 4), good), contains("x.bin") && contains("offset 8"));
  CHECK_THAT(refusal(counting(0, 5), megatron({{3}, {2}}, 4)), contains("x.idx") && contains("int32"));
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    byte_vector part(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(cut));
    REQUIRE_THAT(refusal(counting(0, 5), part), contains("x.idx"));
  }
  CHECK_THAT(refusal({}, megatron({})), contains("no documents"));
  ps::memory_files alone;
  alone.add("x.bin", counting(0, 5));
  CHECK_THAT(caught([&] { static_cast<void>(ps::megatron_documents<token>(alone)); }).line,
             contains("no .idx"));
}

}  // namespace documents_test

TEST_CASE(
    "source/megatron_documents: a file that is cut off while its tokens are copied to rows is an error") {
  if (!penstock_test::faults_have_addresses()) return;
  using namespace documents_test;
  const penstock_test::temp_dir dir;
  write(dir / "x.idx", megatron(sequences(64, {1024})));
  for (const bool split : {false, true}) {  // documents that fit into a row, and pieces of longer ones
    write(dir / "x.bin", counting(0, 64 * 1024));
    const auto documents = ps::megatron_documents<token>(ps::mapped_file((dir / "x.{bin,idx}").string()));
    auto run = (documents |
                ps::pack(documents.lengths(), split ? 512 : 2048,
                         {.how = ps::packing::in_order, .overlong = ps::overlong::split}) |
                ps::batch(1) | ps::workers(0))
                   .open();
    std::uint64_t next = 0;
    bool whole = true;
    const auto cut = caught([&] {
      for (auto&& b : run) {
        for (const token one : b.values().flat()) whole &= one == static_cast<token>(next++);
        if (next == 4096) std::filesystem::resize_file(dir / "x.bin", 100);
      }
    });
    CHECK(whole);
    CHECK(next >= 4096);
    CHECK(next < 64 * 1024);
    CHECK(cut.code == ps::errc::io);
    CHECK_THAT(cut.line, contains("x.bin") && contains("cut off or changed while it was mapped"));
  }
}
