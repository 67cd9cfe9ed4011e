// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/integration/dashboard.hpp>

#include <penstock/core/record.hpp>
#include <penstock/core/whole.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/external_program.hpp"
#include "support/json.hpp"
#include "support/sockets.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace dashboard_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// An image whose pixel (y, x, channel) is made by `Make` from its number.
template <class T, T (*Make)(std::uint64_t, std::size_t), std::uint64_t... Sides>
struct picture {
  using unfinished = void;
  using value_type = T;
  static constexpr ps::extents static_shape{Sides...};
  std::uint64_t number;

  [[nodiscard]] ps::extents shape() const { return static_shape; }
  void write_to(T* to) const {
    for (std::size_t i = 0; i < (Sides * ...); ++i) to[i] = Make(number, i);
  }
  [[nodiscard]] ps::whole_tensor<T> finish() const {
    ps::whole_tensor<T> made;
    write_to(made.resize(static_shape));
    return made;
  }
};

std::uint8_t byte_of(std::uint64_t number, std::size_t i) {
  return static_cast<std::uint8_t>(number * 50 + i);
}
/// Channels first, 128 rows of 100: -1 in the first row, and 0.5 more in each that is shown.
float float_of(std::uint64_t, std::size_t i) { return static_cast<float>(i / 100 % 128) / 4 - 1; }

using small_image = picture<std::uint8_t, byte_of, 4, 5, 3>;
using large_image = picture<float, float_of, 3, 128, 100>;

using labelled = ps::record<ps::field<"number", std::uint64_t>, ps::field<"image", small_image>>;

std::vector<int> from_base64(const std::string& text) {
  std::vector<int> bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits =
        bits << 6 | static_cast<unsigned>(std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstu"
                                                           "vwxyz0123456789+/")
                                              .find(c));
    count += 6;
    if (count >= 8) bytes.push_back(static_cast<int>(bits >> (count -= 8) & 255));
  }
  return bytes;
}

std::string body_of(std::uint16_t port, const std::string& path) {
  const auto got = plain_client(port).get(path);
  CHECK(got.status() == 200);
  return got.body;
}
json data_of(const ps::dashboard& page, std::string_view query = "?after=0&sheet=0") {
  return json::parse(body_of(page.port(), "/data" + std::string(query)));
}

}  // namespace

TEST_CASE("integration/dashboard: the page is told what the run did, also after its end") {
  const auto plan = ps::generated(64, [](std::uint64_t i) { return static_cast<float>(i); }) |
                    ps::shuffle(ps::seed(1)) | ps::map([](float x) { return x + 1; }) | ps::batch(4) |
                    ps::workers(1);
  auto run = std::make_optional(plan.open());
  std::optional<ps::dashboard> page(*run);
  CHECK(page->url() == "http://127.0.0.1:" + std::to_string(page->port()) + "/");
  const auto got = plain_client(page->port()).get("/");
  CHECK(got.status() == 200);
  CHECK(got.head.find("Content-Security-Policy: default-src 'none';") != std::string::npos);
  CHECK(got.body.find("@NONCE@") == std::string::npos);
  CHECK(got.body.find("https:") == std::string::npos);
  CHECK(plain_client(page->port()).get("/else").status() == 404);
  CHECK_FALSE(data_of(*page)["ended"].truth);

  std::uint64_t count = 0;
  for (auto&& b : run->epoch(0)) count += b.size();
  run.reset();
  const json said = data_of(*page);
  CHECK(said["ended"].truth);
  CHECK(said["run"]["samples"].number == static_cast<double>(count));
  CHECK(said["run"]["step"].number == 16);
  CHECK(said["stages"].items.size() == 2);
  CHECK(said["plan"].items.size() == 5);
  CHECK(said["plan"].items[1].text == "shuffle(seed 1)");
  CHECK(said["description"].text == describe(plan).substr(0, describe(plan).find("\ntuning:")));
  CHECK_FALSE(said["verdict"]["advice"].text.empty());
  CHECK(said["sheet"]["count"].number == 0);  // nothing that looks like images
  REQUIRE_FALSE(said["points"].items.empty());
  const auto& last = said["points"].items.back().items;
  CHECK(last.size() == 6);
  CHECK(data_of(*page, "?after=" + std::to_string(static_cast<int>(last[0].number)))["points"].items.empty());
  CHECK(data_of(*page, "?after=99999&sheet=x")["points"].items.size() == said["points"].items.size());

  auto rows = ps::generated(8, [](std::uint64_t i) { return i; }).open();  // without batches
  const ps::dashboard other(rows);
  for ([[maybe_unused]] auto&& row : rows) page.reset();
  CHECK(data_of(other)["sheet"].is == json::kind::null);
}

TEST_CASE("integration/dashboard: a loop that shows itself") {
  auto run = (ps::generated(8, [](std::uint64_t i) { return i; }) | ps::batch(4)).open();
  std::size_t samples = 0;
  const auto step = [&](const auto& batch) { samples += batch.size(); };
  const ps::dashboard page(run);
  std::cerr << "see " << page.url() << '\n';
  for (auto epoch : run.epochs(90))
    for (auto&& batch : epoch) step(batch);
  CHECK(samples == 90 * 8);
}

TEST_CASE("integration/dashboard: a history keeps ten minutes, and names that must be escaped") {
  ps::detail::run_history past({"a \"b\"\n", "map"}, "x\ntuning: y");
  ps::run_counters now;
  for (int i = 0; i < 700; ++i) {
    now.seconds += 2;
    now.samples += 10;
    past.add(now, false);
    past.add(now, false);  // no time has passed
  }
  now.seconds += 0.1;
  ++now.samples;
  past.add(now, true);
  const json all = json::parse(past.json(0, "null", 0));
  CHECK(all["plan"].items[0].text == "a \"b\"\n");
  CHECK(all["description"].text == "x");
  REQUIRE(all["points"].items.size() == 600);
  CHECK(all["points"].items.front().items[0].number == 101);
  CHECK(all["points"].items.back().items[1].number == 1400);
  CHECK(all["points"].items.back().items[2].number == 5);
  CHECK(all["run"]["samples"].number == 7001);
  CHECK(all["ended"].truth);
  CHECK(json::parse(past.json(698, "null", 0))["points"].items.size() == 2);
}

TEST_CASE("integration/dashboard: the contact sheet has the pixels of the next batch") {
  auto run =
      (ps::generated(8, [](std::uint64_t i) { return labelled(i, small_image{i}); }) | ps::batch(4)).open();
  const ps::dashboard page(run);
  CHECK(data_of(page)["sheet"].is == json::kind::null);  // which asks for one
  (void)run.next();
  (void)run.next();
  const json said = data_of(page);
  const json& sheet = said["sheet"];
  REQUIRE(sheet.is == json::kind::object);
  CHECK(said["sheet_number"].number == 1);
  CHECK(sheet["field"].text == "image");
  CHECK(sheet["step"].number == 0);
  CHECK(sheet["of"].number == 4);
  CHECK(sheet["height"].number == 4);
  CHECK(sheet["width"].number == 5);
  CHECK(sheet["channels"].number == 3);
  std::vector<int> expected;
  for (std::uint64_t i = 0; i < 4; ++i)
    for (std::size_t k = 0; k < 60; ++k) expected.push_back(byte_of(i, k));
  CHECK(from_base64(sheet["pixels"].text) == expected);
  CHECK(data_of(page, "?sheet=1")["sheet"].is == json::kind::null);  // the page has it
}

TEST_CASE("integration/dashboard: large images become small ones, and numbers beyond 0 and 1 colours") {
  auto run = (ps::generated(20, [](std::uint64_t i) { return large_image{i}; }) | ps::batch(20)).open();
  ps::dashboard page(run);
  (void)data_of(page);
  (void)run.next();
  const json sheet = data_of(page)["sheet"];
  CHECK(sheet["count"].number == 16);
  CHECK(sheet["height"].number == 64);
  CHECK(sheet["width"].number == 50);
  const std::vector<int> pixels = from_base64(sheet["pixels"].text);
  REQUIRE(pixels.size() == 16 * 64 * 50 * 3);
  bool right = true;
  for (std::size_t i = 0; i < pixels.size(); ++i)
    right = right && pixels[i] == static_cast<int>(255 * static_cast<float>(i / 150 % 64) / 63 + 0.5F);
  CHECK(right);
}

TEST_CASE("integration/dashboard: beyond loopback, a page wants its token") {
  auto run = (ps::generated(8, [](std::uint64_t i) { return i; }) | ps::batch(4)).open();
  const ps::dashboard open(run, {.address = "0.0.0.0"});
  const std::size_t token = open.url().find("/?token=");
  REQUIRE(token != std::string::npos);
  const std::string query = open.url().substr(token + 1);
  CHECK(query.size() == 7 + 32);
  for (const std::string path : {"/", "/data"}) {
    CHECK(plain_client(open.port()).get(path).status() == 401);
    CHECK(plain_client(open.port()).get(path + query).status() == 200);
  }
  CHECK(ps::dashboard(run, {.token = "mine"}).url().ends_with("/?token=mine"));
  try {
    const ps::dashboard second(run, {.port = open.port(), .address = "0.0.0.0"});
    FAIL("the port is taken");
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::io);
  }
}

TEST_CASE("integration/dashboard: pages that ask, come and go do not disturb a run that ends") {
  for (int round = 0; round < 3; ++round) {
    auto run = std::make_optional(
        (ps::generated(4096, [](std::uint64_t i) { return small_image{i}; }) | ps::batch(8) | ps::workers(1))
            .open());
    const ps::dashboard page(*run);
    std::optional<ps::dashboard> second(*run);
    std::atomic<bool> end{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> pages;
    for (const std::uint16_t port : {page.port(), page.port(), second->port()})
      pages.emplace_back([&, port] {
        while (!end)
          if (plain_client(port).get("/data?after=0&sheet=0").status() != 200) ++wrong;
      });
    for (auto epoch : run->epochs(3))
      for (auto&& b : epoch)
        if (b.values()[0].data()[0] != byte_of(b.positions()[0].index, 0)) ++wrong;
    run.reset();
    end = true;
    for (std::thread& one : pages) one.join();
    second.reset();
    CHECK(wrong == 0);
    CHECK(data_of(page)["run"]["samples"].number == 3 * 4096);
  }
}

TEST_CASE("integration/dashboard: a browser shows the page in dark and light, on a phone, and by keyboard") {
  const char* support = std::getenv("PENSTOCK_TEST_SUPPORT");
  const std::string script =
      "python3 -B " + std::string(support == nullptr ? "support" : support) + "/dashboard_page.py ";
  if (!have_program("Chromium", script + "check")) return;
  std::atomic<bool> end{false};
  auto run = std::make_optional((ps::generated(4096, [](std::uint64_t i) { return i; }) |
                                 ps::map([](std::uint64_t i) { return small_image{i}; }) | ps::batch(8) |
                                 ps::workers(1))
                                    .open());
  const ps::dashboard page(*run, {.token = "mine"});
  std::thread loop([&] {
    while (!end)
      for (auto&& b : run->epoch(0)) {
        if (end) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(b.size()));
      }
    run.reset();
  });
  const program_result seen = run_program(script + "'" + page.url() + "'");
  end = true;
  loop.join();
  INFO(seen.output);
  CHECK(seen.status == 0);
  const program_result after = run_program(script + "'" + page.url() + "' ended");
  INFO(after.output);
  CHECK(after.status == 0);
}

}  // namespace dashboard_test
