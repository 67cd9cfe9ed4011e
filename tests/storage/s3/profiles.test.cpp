// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3/profiles.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <penstock/core/error.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace ps = penstock;
namespace s3 = penstock::detail::s3;
using penstock_test::contains;

std::vector<s3::ini_section> ini_of(std::string_view chars) {
  return s3::ini_reader(chars, "the file").read();
}
std::string ini_value(const std::vector<s3::ini_section>& sections, std::string_view section,
                      std::string_view name) {
  for (const auto& one : sections)
    if (one.name == section)
      if (const auto* const found = one.find(name)) return found->value;
  return "(none)";
}

}  // namespace

TEST_CASE("storage/s3/profiles: sections, comments, spaces, and the last of equal names") {
  const auto all = ini_of(
      "\xEF\xBB\xBF# first\r\n; second\n\n[default] # of all\nAWS_Access_Key_Id=a=b==\n  secret = x#y ; z\n"
      "region\t=\tr1\nempty =\n[ other ]\nregion = r2\n[default]\nregion = r3 # here\nlast = no newline");
  REQUIRE(all.size() == 2);
  CHECK(ini_value(all, "default", "aws_access_key_id") == "a=b==\nsecret = x#y ; z");
  CHECK(ini_value(all, "default", "region") == "r3");
  CHECK(ini_value(all, "default", "empty").empty());
  CHECK(ini_value(all, "default", "last") == "no newline");
  CHECK(ini_value(all, "other", "region") == "r2");
  CHECK(ini_of("").empty());
  CHECK(ini_of("\n#\n").empty());
  // Entries that are all indented alike are entries.
  const auto indented = ini_of("[default]\n  a = 1\n  b = 2\nc =\n  d = 3\n  e = 4\n f = 5\n");
  CHECK(ini_value(indented, "default", "a") == "1");
  CHECK(ini_value(indented, "default", "b") == "2");
  CHECK(indented.at(0).find("c")->inner.size() == 3);
  CHECK(indented.at(0).find("c")->inner.at(1).name == "e");
  CHECK(indented.at(0).find("c")->inner.at(2).value == "5");
}

TEST_CASE("storage/s3/profiles: a malformed line is named by its number, and not shown") {
  const auto refused = [](std::string_view chars, const std::string& sentence) {
    CAPTURE(chars);
    try {
      (void)ini_of(chars);
      FAIL("it was taken");
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::argument);
      CHECK(e.file() == "the file");
      CHECK_THAT(e.what(), contains(sentence));
      CHECK(std::string(e.what()).find("MARKED") == std::string::npos);
    }
  };
  refused("a = MARKED", "line 1 of this file of AWS profiles comes before the first [section]");
  refused("[a]\n\nMARKED\n", "line 3 of this file of AWS profiles is neither");
  refused("[MARKED\n", "line 1 of this file of AWS profiles begins a section that has no ']'");
  refused("[]\n", "a section without a name");
  refused("[a] MARKED\n", "text behind its ']'");
  refused("[a]\n= MARKED\n", "no name before its '='");
  refused("[a]\nb =\n  MARKED\n", "indented, but no name = value");
  refused(std::string_view("[a]\nb = MARKED\0", 15), "has a control character");
  refused("[a]\nb = MARKED\x01\n", "has a control character");
}

TEST_CASE("storage/s3/profiles: both files, of which that of credentials decides") {
  const penstock_test::temp_dir home;
  std::filesystem::create_directory(home / ".aws");
  std::ofstream(home / ".aws/config")
      << "[default]\nregion = plain\n[profile default]\nregion = named\n[profile a b]\nx = 1\n"
         "[profile \"quoted name\"]\nx = 2\n[bare]\nx = 3\n[profile both]\nx = config\ny = config\n";
  std::ofstream(home / ".aws/credentials") << "[both]\nx = credentials\ny =\n[only]\naws_access_key_id = i\n";
  const s3::profile_files files(ps::s3_environment({{"HOME", home.path().string()}}));
  CHECK(files.value("default", "region") == "named");
  CHECK(files.value("a b", "x") == "1");
  CHECK(files.value("quoted name", "x") == "2");
  CHECK_FALSE(files.has("bare"));
  CHECK(files.value("both", "x") == "credentials");
  CHECK(files.value("both", "y") == "config");
  CHECK(files.has("only"));
  CHECK_FALSE(files.value("only", "x").has_value());
  CHECK_FALSE(files.has("nobody"));

  const std::string moved = (home / "elsewhere").string();
  std::filesystem::rename(home / ".aws/config", moved);
  CHECK(s3::profile_files(
            ps::s3_environment({{"HOME", home.path().string()}, {"AWS_CONFIG_FILE", "~/elsewhere"}}))
            .value("a b", "x") == "1");
  CHECK(s3::profile_files(ps::s3_environment({{"AWS_CONFIG_FILE", moved}})).value("a b", "x") == "1");
  CHECK_FALSE(s3::profile_files(ps::s3_environment()).has("a b"));
}

TEST_CASE("storage/s3/profiles: AWS_PROFILE must be there; files that cannot be read are errors") {
  const penstock_test::temp_dir home;
  const ps::s3_environment plain({{"HOME", home.path().string()}});
  CHECK(s3::profile_name(plain, s3::profile_files(plain)) == "default");
  const ps::s3_environment lost({{"HOME", home.path().string()}, {"AWS_PROFILE", "lost"}});
  CHECK_THROWS_WITH(
      s3::profile_name(lost, s3::profile_files(lost)),
      contains("AWS_PROFILE names the profile 'lost', which is not in " + home.path().string()));
  std::filesystem::create_directories(home / ".aws/config");
  CHECK_THROWS_WITH(s3::profile_files(plain), contains("file of credentials"));
  std::ofstream(home / "large") << std::string((1u << 20) + 1, '#');
  CHECK_THROWS_WITH(s3::profile_files(ps::s3_environment({{"AWS_CONFIG_FILE", (home / "large").string()}})),
                    contains("larger than a MiB"));
}
