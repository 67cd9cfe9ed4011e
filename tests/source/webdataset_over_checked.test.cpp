// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds files that are compared with a list of hashes to the stores from which the tests of webdataset read;
// see support/stored.hpp.

#include <penstock/codec/text.hpp>
#include <penstock/core/error.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/checked.hpp>
#include <penstock/storage/ed25519.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/sha256_check.hpp>
#include <penstock/storage/sha256_list.hpp>
#include <penstock/storage/sidecar.hpp>
#include <penstock/storage/signature.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/external_program.hpp"
#include "support/raw_tar.hpp"
#include "support/stored.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace webdataset_over_checked_test {

namespace ps = penstock;

/// Files that are compared with the hashes that they have when a session begins.
struct compared_files {
  static constexpr bool names_are_paths = false;
  using session = ps::checked<ps::file>::session;
  ps::file files;

  [[nodiscard]] std::span<const std::string> names() const { return files.names(); }
  [[nodiscard]] session connect() const {
    std::vector<ps::sha256_list::entry> entries;
    for (const std::string& name : names()) {
      if (!std::filesystem::is_regular_file(name)) continue;
      entries.push_back({name, {}});
      if (std::ifstream(name))
        entries.back().hash = ps::sha256_of(ps::file(std::vector{name})).entries()[0].hash;
    }
    return ps::checked(files, ps::sha256_list(std::move(entries))).connect();
  }
  [[nodiscard]] compared_files sidecars(ps::sidecar which) const {
    std::vector<std::string> all;
    for (const std::string& name : names()) all.push_back(which.of(name));
    return {files.with_names(std::move(all))};
  }
};

const bool added = penstock_test::add_store({"checked", [] { return true; },
                                             [](const std::vector<std::string>& paths) {
                                               return penstock_test::stored(compared_files{ps::file(paths)});
                                             }});

TEST_CASE("source/webdataset_over_checked: the tests of webdataset read files that are compared, too") {
  CHECK(added);
  std::vector<std::string> kinds;
  const std::string shard = penstock_test::raw_tar().member("a.txt", "1").end().bytes;
  penstock_test::put_in_each_store({{"t.tar", shard}}, [&](const std::string& kind, const auto& where) {
    kinds.push_back(kind);
    CHECK(ps::webdataset(where, {.index = ps::index_policy::transient}).size() == 1);
  });
  CHECK(std::count(kinds.begin(), kinds.end(), "checked") == 1);
}

TEST_CASE(
    "source/webdataset_over_checked: a harmed shard is an error in every store, and no sample of it comes") {
  const std::string shard = penstock_test::raw_tar().member("a.txt", "1").member("b.txt", "2").end().bytes;
  std::string harmed = shard;
  harmed[512] = static_cast<char>(harmed[512] ^ 1);
  const ps::sha256_list list({{"t.tar", ps::sha256_of(ps::bytes_of(shard))}});
  for (const bool good : {true, false})
    penstock_test::put_in_each_store(
        {{"t.tar", good ? shard : harmed}}, [&](const std::string& kind, const auto& where) {
          CAPTURE(kind);
          std::size_t samples = 0;
          std::string failed;
          try {
            const ps::webdataset data(ps::checked(where, list), {.index = ps::index_policy::transient});
            for (auto&& one : data.epoch(0)) {
              static_cast<void>(one);
              ++samples;
            }
          } catch (const ps::error& e) {
            failed = e.what();
          }
          CHECK(samples == (good ? 2u : 0u));
          CHECK((failed.find("SHA-256") != std::string::npos) == !good);
        });
}

TEST_CASE("source/webdataset_over_checked: runs that read ahead give the samples of the plain shards") {
  const penstock_test::deadline limit("samples of compared shards");
  ps::memory_files files;
  for (int shard = 0; shard < 5; ++shard) {
    penstock_test::raw_tar tar;
    for (int i = 0; i < 40; ++i)
      tar.member(std::to_string(shard) + "-" + std::to_string(i) + ".txt",
                 std::string(static_cast<std::size_t>(i * 97 % 1500), 'x') + std::to_string(shard * 40 + i));
    files.add("s" + std::to_string(shard), tar.end().bytes);
  }
  const auto values = [](const auto& where, unsigned workers) {
    std::vector<std::string> all;
    for (auto&& one :
         (ps::webdataset(where, {.index = ps::index_policy::transient}) | ps::shuffle(ps::seed(7)) |
          ps::decode<ps::field<"txt", ps::text>> | ps::workers(workers))
             .epoch(0))
      all.emplace_back(std::string_view(ps::get<"txt">(one)));
    return all;
  };
  const auto wanted = values(files, 0);
  REQUIRE(wanted.size() == 200);
  const ps::sha256_list list = ps::sha256_of(files);
  const ps::simulated_storage far(files, {.latency = std::chrono::microseconds(300)});
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    CAPTURE(workers);
    CHECK(values(ps::checked(files, list), workers) == wanted);
    CHECK(values(ps::checked(far, list, {.max_checks_in_flight = 2}), workers) == wanted);
    CHECK(values(ps::retrying(ps::checked(far, list)), workers) == wanted);
  }
}

TEST_CASE("source/webdataset_over_checked: a list that the programs sha256sum and openssl made") {
  if (!penstock_test::have_program("openssl", "openssl version && sha256sum --version")) return;
  const penstock_test::temp_dir place;
  const std::string folder = place.path().string();
  for (const char* const name : {"train-0.tar", "train-1.tar"})
    penstock_test::raw_tar().member("a.txt", name).end().save(folder + "/" + name);
  const auto made = penstock_test::run_program(
      "cd '" + folder +
      "' && openssl genpkey -algorithm ed25519 -out key.pem && openssl pkey -in key.pem -pubout -out "
      "public.pem && "
      "sha256sum train-*.tar > train.sha256 && "
      "openssl pkeyutl -sign -rawin -inkey key.pem -in train.sha256 -out train.sha256.sig");
  CAPTURE(made.output);
  REQUIRE(made.status == 0);

  const auto key = ps::verifying_key::from_file(folder + "/public.pem");
  const auto list = ps::read_sha256_list(ps::file(folder + "/train.sha256"), ps::require_signature(key));
  const ps::checked shards(ps::file(folder + "/train-{0..1}.tar"), list);
  CHECK(ps::webdataset(shards, {.index = ps::index_policy::transient}).size() == 2);
}

TEST_CASE("source/webdataset_over_checked: signing and listing without other programs") {
  const penstock_test::temp_dir place;
  const std::string folder = place.path().string();
  penstock_test::raw_tar().member("a.txt", "0").end().save(folder + "/train-0.tar");
  const ps::signing_key ours(ps::bytes_of("take the bytes from your vault!!"));

  const std::string text = ps::to_string(ps::sha256_of(ps::file(folder + "/train-0.tar")));
  std::ofstream(folder + "/train.sha256") << text;
  std::ofstream(folder + "/train.sha256.sig") << ps::text_of(ours.sign(ps::bytes_of(text)).bytes);

  const ps::file where(folder + "/train.sha256");
  const auto list = ps::read_sha256_list(where, ps::require_signature(ours.public_key()));
  CHECK(ps::webdataset(ps::checked(ps::file(folder + "/train-0.tar"), list),
                       {.index = ps::index_policy::transient})
            .size() == 1);
}

}  // namespace webdataset_over_checked_test
