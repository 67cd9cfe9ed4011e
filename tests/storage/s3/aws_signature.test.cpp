// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3/aws_signature.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"

#include <penstock/core/error.hpp>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace ps = penstock;
namespace s3 = penstock::detail::s3;
using s3_pairs = std::vector<s3::name_value>;

s3::wall_time seconds_since_1970(long long seconds) { return s3::wall_time(std::chrono::seconds(seconds)); }

/// The examples of AWS are all of this moment.
s3::wall_time example_time() { return s3::parse_rfc3339("2013-05-24T00:00:00Z").value(); }
const ps::s3_credentials& example_credentials() {
  static const ps::s3_credentials all{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
  return all;
}
constexpr std::string_view example_host = "examplebucket.s3.amazonaws.com";

std::string hash_of(const s3::aws_signer& signer) { return s3::payload_hash(signer.canonical_request()); }
std::string signature_in(const std::string& line) {
  const std::size_t at = line.find("Signature=");
  return at == std::string::npos ? "" : line.substr(at + 10);
}
std::string authorization_of(const s3::signed_request& made) {
  return std::string(s3::header_of(made.headers, "Authorization").value_or(""));
}

/// Host and port of a URL without a path, the port only if it is not the scheme's own.
std::string host_header_of(std::string_view base) {
  const std::size_t end = base.find("://");
  const std::string_view usual = base.substr(0, end) == "http" ? ":80" : ":443";
  base.remove_prefix(end + 3);
  if (base.ends_with(usual)) base.remove_suffix(usual.size());
  return std::string(base);
}

/// What botocore makes of a random request; tools/signature_oracles.py writes them.
struct signature_oracle {
  std::string service, method, base, path;
  s3_pairs query, headers;
  std::string body;
  bool is_unsigned;
  std::string key_id, secret, token;
  long long seconds;
  std::string region;
  std::string expected;
};
const std::vector<signature_oracle>& signature_oracles() {
  static const std::vector<signature_oracle> all{
#include "storage/s3/oracles/signatures.inc"
  };
  return all;
}

}  // namespace

TEST_CASE("storage/s3/aws_signature: a ranged GET of the documentation") {
  s3::aws_signer signer("us-east-1");
  s3::signed_request made;
  const s3_pairs headers{{"Range", "bytes=0-9"}};
  signer.sign({"GET", example_host, "/test.txt", {}, headers}, example_credentials(), example_time(), made);
  CHECK(hash_of(signer) == "7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972");
  CHECK(made.target == "/test.txt");
  CHECK(authorization_of(made) ==
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  REQUIRE(made.headers.size() == 3);
  CHECK(s3::header_of(made.headers, "x-amz-date") == "20130524T000000Z");
  CHECK(s3::header_of(made.headers, "x-amz-content-sha256") == s3::empty_payload);
  CHECK(s3::payload_hash("") == s3::empty_payload);
}

TEST_CASE("storage/s3/aws_signature: lists and parameters without a value") {
  s3::aws_signer signer("us-east-1");
  s3::signed_request made;
  const s3_pairs list{{"prefix", "J"}, {"max-keys", "2"}};
  signer.sign({"GET", example_host, "/", list, {}}, example_credentials(), example_time(), made);
  CHECK(hash_of(signer) == "df57d21db20da04d7fa30298dd4488ba3a2b47ca3a489c74750e0f1e7df1b9b7");
  CHECK(signature_in(authorization_of(made)) ==
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
  CHECK(made.target == "/?max-keys=2&prefix=J");
  const s3_pairs lifecycle{{"lifecycle", ""}};
  signer.sign({"GET", example_host, "", lifecycle, {}}, example_credentials(), example_time(), made);
  CHECK(hash_of(signer) == "9766c798316ff2757b517bc739a67f6213b4ab36dd5da2f94eaebf79c77395ca");
  CHECK(signature_in(authorization_of(made)) ==
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  CHECK(made.target == "/?lifecycle=");
}

TEST_CASE("storage/s3/aws_signature: a PUT whose body is hashed") {
  s3::aws_signer signer("us-east-1");
  s3::signed_request made;
  const std::string hash = s3::payload_hash("Welcome to Amazon S3.");
  CHECK(hash == "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
  const s3_pairs headers{{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                         {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
  signer.sign({"PUT", example_host, s3::percent_encoded("/test$file.text", true), {}, headers, hash},
              example_credentials(), example_time(), made);
  CHECK(signature_in(authorization_of(made)) ==
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  CHECK(made.target == "/test%24file.text");
}

TEST_CASE("storage/s3/aws_signature: random requests are signed as botocore signs them") {
  // One signer for all requests of a region, so that its key is sometimes kept and sometimes made again.
  std::map<std::pair<std::string, std::string>, s3::aws_signer> signers;
  s3::signed_request made;
  REQUIRE(signature_oracles().size() >= 50);
  for (const signature_oracle& one : signature_oracles()) {
    s3::aws_signer& signer =
        signers.try_emplace({one.region, one.service}, one.region, one.service).first->second;
    const std::string host = host_header_of(one.base);
    const std::string path = s3::percent_encoded(one.path, true);
    const std::string payload =
        one.is_unsigned ? std::string(s3::unsigned_payload) : s3::payload_hash(one.body);
    const s3::signable request{one.method, host, path, one.query, one.headers, payload};
    const ps::s3_credentials as{one.key_id, one.secret, one.token};
    CAPTURE(one.base, one.path, one.expected);
    for (int again = 0; again < 2; ++again) {
      signer.sign(request, as, seconds_since_1970(one.seconds), made);
      CHECK(authorization_of(made) == one.expected);
    }
  }
}

TEST_CASE("storage/s3/aws_signature: the key is made again for another day or secret") {
  s3::aws_signer signer("us-east-1");
  s3::signed_request made;
  const auto sign = [&](const ps::s3_credentials& as, s3::wall_time when, s3::aws_signer& with) {
    with.sign({"GET", example_host, "/a", {}, {}}, as, when, made);
    return authorization_of(made);
  };
  const ps::s3_credentials other{"AKIAIOSFODNN7EXAMPLE", "another secret"};
  const s3::wall_time next_day = example_time() + std::chrono::hours(25);
  for (int i = 0; i < 2; ++i) {
    s3::aws_signer fresh("us-east-1");
    CHECK(sign(other, example_time(), signer) == sign(other, example_time(), fresh));
    fresh = s3::aws_signer("us-east-1");
    CHECK(sign(other, next_day, signer) == sign(other, next_day, fresh));
    fresh = s3::aws_signer("us-east-1");
    CHECK(sign(example_credentials(), next_day, signer) == sign(example_credentials(), next_day, fresh));
  }
}

TEST_CASE("storage/s3/aws_signature: the session token is signed and sent") {
  s3::aws_signer signer("us-east-1");
  s3::signed_request made;
  const ps::s3_credentials as{"KEY", "SECRET", "TOKEN/+="};
  signer.sign({"GET", "localhost:8333", "/b/k", {}, {}, s3::unsigned_payload}, as, example_time(), made);
  CHECK(s3::header_of(made.headers, "x-amz-security-token") == "TOKEN/+=");
  CHECK_THAT(authorization_of(made), penstock_test::contains(";x-amz-security-token,"));
  CHECK_THAT(signer.canonical_request(), penstock_test::contains("host:localhost:8333\n"));
}

TEST_CASE("storage/s3/aws_signature: nobody signs nothing") {
  s3::aws_signer signer("us-east-1");
  s3::signed_request made;
  const s3_pairs query{{"list-type", "2"}, {"a b", "/"}};
  signer.sign({"GET", example_host, "/k", query, {}}, {}, example_time(), made);
  CHECK(made.target == "/k?a%20b=%2F&list-type=2");
  CHECK(made.headers.empty());
}

TEST_CASE("storage/s3/aws_signature: signing allocates nothing once its strings have grown") {
  s3::aws_signer signer("us-east-1");
  s3::signed_request made;
  const ps::s3_credentials as{"KEY", "SECRET", std::string(300, 't')};
  const s3_pairs headers{{"range", "bytes=123456789-987654321"},
                         {"if-match", "\"0123456789abcdef0123456789abcdef\""}};
  const s3::signable request{"GET", example_host, "/a/long/key/of/a/shard/train-000123.tar", {}, headers};
  // Sorting exchanges strings, so that it takes some requests until each has grown.
  for (int i = 0; i < 20; ++i) signer.sign(request, as, example_time(), made);
  CHECK(penstock_test::allocations_of([&] {
          for (int i = 1; i < 100; ++i)
            signer.sign(request, as, example_time() + std::chrono::seconds(i), made);
        }) == 0);
}

TEST_CASE("storage/s3/aws_signature: dates that answers and credentials have") {
  const auto at = [](std::string_view date) { return s3::parse_rfc3339(date); };
  const s3::wall_time noon = seconds_since_1970(1'795'435'200);  // 2026-11-23 12:00
  CHECK(at("2026-11-23T12:00:00Z") == noon);
  CHECK(at("2026-11-23t12:00:00.999z") == noon);
  CHECK(at("2026-11-23T13:30:00+01:30") == noon);
  CHECK(at("2026-11-23 04:00:00-08:00") == noon);
  CHECK(at("2024-02-29T23:59:60Z").has_value());
  for (const char* const wrong :
       {"", "2026-11-23", "2026-11-23T12:00:00", "2026-11-23T12:00:00Zx", "2025-02-29T12:00:00Z",
        "2026-13-01T12:00:00Z", "2026-11-23T24:00:00Z", "2026-11-23T12:60:00Z", "2026-11-23T12:00:00.Z",
        "2026-11-23T12:00:00+24:00", "26-11-23T12:00:00Z", "2026-11-23T12:00:00+1:00", "2026-00-01T12:00:00Z",
        "2026-01-00T12:00:00Z"})
    CHECK_FALSE(at(wrong).has_value());
  CHECK(ps::detail::parse_http_date("Mon, 23 Nov 2026 12:00:00 GMT") == noon);
  for (const char* const wrong :
       {"", "23 Nov 2026 12:00:00 GMT", "Mon, 23 Nov 2026 12:00:00", "Mon, 23 Nev 2026 12:00:00 GMT",
        "Monday, 23-Nov-26 12:00:00 GMT", "Mon, 31 Nov 2026 12:00:00 GMT"})
    CHECK_FALSE(ps::detail::parse_http_date(wrong).has_value());
  std::string line;
  s3::write_amz_date(line, noon + std::chrono::seconds(3661));
  CHECK(line == "20261123T130101Z");
}
