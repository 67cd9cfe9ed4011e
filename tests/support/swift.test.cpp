// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/swift.hpp"

#include "support/catch.hpp"
#include "support/deadline.hpp"

#include <array>
#include <cstdint>
#include <ctime>
#include <string>

TEST_CASE(
    "support/swift: keeps objects that boto3 puts, and is strict about conditions and who may read them") {
  if (!penstock_test::have_swift()) return;
  const penstock_test::deadline limit("Swift");
  std::uint16_t port = 0;
  {
    const penstock_test::swift_server server;
    port = server.port();
    std::string bytes(100'000, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 + (i >> 8));
    server.put("bucket", {{"folder/a b.tar", bytes}, {"c", "small"}});
    CHECK((server.get("bucket", "folder/a b.tar") == bytes));
    CHECK(server.get("bucket", "c") == "small");
    CHECK(server.list("bucket") == "c\nfolder/a b.tar\n");
    CHECK_THROWS_WITH(server.get("bucket", "missing"), penstock_test::contains("NoSuchKey"));
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    std::array<char, 64> date{};
    REQUIRE(std::strftime(date.data(), date.size(), "%a, %d %b %Y %H:%M:%S GMT", ::gmtime_r(&now, &parts)) >
            0);
    const std::string forged = std::string("Date: ") + date.data() +
                               "\r\nAuthorization: AWS test:tester:AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n";
    CHECK(penstock_test::plain_client(port).get("/bucket/c", forged + "Connection: close\r\n").status() ==
          403);
  }
  CHECK_FALSE(penstock_test::plain_client(port).open());
}
