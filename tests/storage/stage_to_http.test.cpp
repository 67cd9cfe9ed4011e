// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Staged from a real server, as a dataset, and with a server that dies.
#include <penstock/storage/stage_to.hpp>

#include <penstock/core/error.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/http.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/http_session.hpp"
#include "support/nginx.hpp"
#include "support/temp_dir.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace ps = penstock;

namespace stage_to_http_test {

using penstock_test::direct;
using penstock_test::have_nginx;

/// Four shards of 40 samples of different sizes.
void write_shards(const std::filesystem::path& folder) {
  ps::shard_writer out((folder / "a-%d.tar").string(), {.maxcount = 40});
  for (std::size_t i = 0; i < 160; ++i)
    out.write(std::to_string(i),
              {{"bin", std::string(20'000 + i % 13 * 999, static_cast<char>('a' + (i + i / 30) % 26))}});
  (void)out.close();
}
std::string bytes_of_epoch(const ps::webdataset<ps::file>& source) {
  const auto plan = source | ps::shuffle(ps::seed(7)) | ps::fields<"bin"> | ps::batch(8, ps::ragged);
  std::string all;
  for (auto&& batch : plan.epoch(0))
    for (std::size_t i = 0; i < batch.valid_size(); ++i)
      all.append(ps::text_of(ps::as_bytes(ps::get<"bin">(batch)[i]))).append("\n");
  return all;
}

TEST_CASE("storage/stage_to: shards of a web server") {
  if (!have_nginx()) return;
  const penstock_test::deadline limit("staging from nginx");
  const penstock_test::temp_dir dir;
  penstock_test::nginx_server server;
  write_shards(server.root());
  const std::string folder = (dir / "near").string();
  const ps::http far(server.url("a-{0..3}.tar"), direct());
  const std::string expected =
      bytes_of_epoch(ps::webdataset(ps::file((server.root() / "a-{0..3}.tar").string())));
  ps::stage_progress last;
  const auto watch = [&](const ps::stage_progress& now) { last = now; };
  CHECK(bytes_of_epoch(ps::webdataset(ps::stage_to(far, folder, {.part_size = 100'000}, watch))) == expected);
  CHECK(last.fetched == last.bytes);
  CHECK(last.bytes > 3'200'000);
  (void)ps::stage_to(far, folder, {}, watch);
  CHECK(last.fetched == 0);
  // One of them is replaced.
  const std::string text(30'000, 'x');
  std::ofstream(server.root() / "new") << text;
  std::filesystem::rename(server.root() / "new", server.root() / "a-2.tar");
  (void)ps::stage_to(far, folder, {}, watch);
  CHECK(last.fetched == 30'000);
  CHECK(std::filesystem::file_size(folder + "/a-2.tar") == 30'000);
}

TEST_CASE("storage/stage_to: a missing object of a web server is an error with its name") {
  if (!have_nginx()) return;
  const penstock_test::deadline limit("staging from nginx");
  const penstock_test::temp_dir dir;
  penstock_test::nginx_server server;
  std::ofstream(server.root() / "a-0.tar") << "bytes";
  const ps::http far(server.url("a-{0..1}.tar"), direct());
  CHECK_THROWS_WITH(ps::stage_to(far, dir.path().string()),
                    penstock_test::contains("404") && penstock_test::contains("a-1.tar"));
}

}  // namespace stage_to_http_test
