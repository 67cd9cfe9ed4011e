// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3/endpoint.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <penstock/core/error.hpp>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace ps = penstock;
namespace s3 = penstock::detail::s3;
using penstock_test::contains;

std::string object_at(const ps::s3_place& place, std::string_view bucket, std::string_view object) {
  return s3::endpoint(place).of(bucket, object).text();
}
std::string bucket_at(const ps::s3_place& place, std::string_view bucket) {
  return s3::endpoint(place).of(bucket).text();
}

}  // namespace

TEST_CASE("storage/s3/endpoint: AWS has the bucket in the host, unless a certificate would not fit") {
  const ps::s3_place place{.region = "eu-central-1"};
  CHECK(object_at(place, "photos", "a/b c.tar") ==
        "https://photos.s3.eu-central-1.amazonaws.com/a/b%20c.tar");
  CHECK(bucket_at(place, "photos") == "https://photos.s3.eu-central-1.amazonaws.com/");
  CHECK(object_at(place, "my.photos", "k") == "https://s3.eu-central-1.amazonaws.com/my.photos/k");
  CHECK(bucket_at(place, "my.photos") == "https://s3.eu-central-1.amazonaws.com/my.photos");
  CHECK(object_at({.region = "cn-north-1"}, "photos", "k") ==
        "https://photos.s3.cn-north-1.amazonaws.com.cn/k");
  CHECK(object_at({.region = "us-east-1", .endpoint = "", .addressing = ps::s3_addressing::path}, "photos",
                  "k") == "https://s3.us-east-1.amazonaws.com/photos/k");
  CHECK(object_at({.region = "us-east-1", .endpoint = "", .addressing = ps::s3_addressing::path},
                  "Old_Photos", "k") == "https://s3.us-east-1.amazonaws.com/Old_Photos/k");
  // Endpoints of AWS that were named are of AWS too.
  CHECK(object_at({.region = "eu-west-1", .endpoint = "https://s3.dualstack.eu-west-1.amazonaws.com"},
                  "photos", "k") == "https://photos.s3.dualstack.eu-west-1.amazonaws.com/k");
}

TEST_CASE("storage/s3/endpoint: other stores have the bucket in the path, behind that of the endpoint") {
  CHECK(object_at({.region = "us-east-1", .endpoint = "http://localhost:8333"}, "b.u.c", "k") ==
        "http://localhost:8333/b.u.c/k");
  CHECK(object_at({.region = "us-east-1", .endpoint = "http://gateway:8080/s3/"}, "bucket", "train/0.tar") ==
        "http://gateway:8080/s3/bucket/train/0.tar");
  CHECK(bucket_at({.region = "us-east-1", .endpoint = "http://gateway:8080/s3"}, "Bucket_1") ==
        "http://gateway:8080/s3/Bucket_1");
  CHECK(object_at({.region = "us-east-1", .endpoint = "http://[::1]:9000"}, "bucket", "k") ==
        "http://[::1]:9000/bucket/k");
  const ps::s3_place google{.region = "auto", .endpoint = "https://storage.googleapis.com"};
  CHECK(object_at(google, "bucket", "k") == "https://storage.googleapis.com/bucket/k");
  CHECK(object_at({"auto", google.endpoint, ps::s3_addressing::host}, "bucket", "k") ==
        "https://bucket.storage.googleapis.com/k");
  CHECK(s3::endpoint(google).region() == "auto");
  CHECK(s3::endpoint(google).is_encrypted());
  CHECK_FALSE(s3::endpoint({.region = "r", .endpoint = "http://h"}).is_encrypted());
}

TEST_CASE("storage/s3/endpoint: keys are encoded once and not normalised") {
  const ps::s3_place place{.region = "us-east-1", .endpoint = "http://h"};
  CHECK(object_at(place, "bucket", "a//b/../c/./%41+~") == "http://h/bucket/a//b/../c/./%2541%2B~");
  CHECK(object_at(place, "bucket", "/k?x#y") == "http://h/bucket//k%3Fx%23y");
  CHECK(object_at(place, "bucket", "\xC3\xA4\n") == "http://h/bucket/%C3%A4%0A");
}

TEST_CASE("storage/s3/endpoint: what cannot be an endpoint is refused, and no secret of it is shown") {
  const auto refused = [](const ps::s3_place& place, const std::string& sentence) {
    CHECK_THROWS_WITH(bucket_at(place, "bucket"), contains(sentence));
  };
  refused({.region = "auto"}, "give their endpoint as well");
  refused({.region = "us east"}, "is not a region");
  refused({.region = "evil.com/"}, "is not a region");
  refused({.region = std::string(65, 'r')}, "is not a region");
  refused({.region = "r", .endpoint = "s3://bucket"}, "must begin with http:// or https://");
  refused({.region = "r", .endpoint = "localhost:9000"}, "is not absolute");
  refused({.region = "r", .endpoint = "http://h/?x=MARKED"}, "has a query");
  refused({"r", "http://127.0.0.1:9000", ps::s3_addressing::host}, "is an address");
  refused({"r", "http://[::1]", ps::s3_addressing::host}, "is an address");
  for (const char* const secret : {"http://h/?x=MARKED", "http://user:MARKED@h/"}) try {
      (void)s3::endpoint({.region = "r", .endpoint = secret});
      FAIL("it was taken");
    } catch (const ps::error& e) {
      CHECK(std::string(e.what()).find("MARKED") == std::string::npos);
      CHECK(e.code() == ps::errc::argument);
    }
  CHECK_THROWS_WITH(bucket_at({"r", "https://h", ps::s3_addressing::host}, "b.c.d"),
                    contains("no certificate fits"));
  CHECK(bucket_at({"r", "http://h", ps::s3_addressing::host}, "b.c.d") == "http://b.c.d.h/");
}

TEST_CASE("storage/s3/endpoint: the rules for names of buckets, each with its sentence") {
  const auto refused = [](std::string_view name, const std::string& sentence, bool strict = true) {
    CAPTURE(name);
    CHECK_THROWS_WITH(s3::check_bucket(name, strict), contains(sentence));
  };
  for (const char* const good : {"abc", "a-b.c-1", "123", "1.2.3", "1.2.3.4a", "1234.1.1.1", "x-s3", "0a0"})
    s3::check_bucket(good);
  s3::check_bucket(std::string(63, 'a'));
  s3::check_bucket(std::string(255, 'a'), false);
  s3::check_bucket("Old_Name-", false);
  refused("ab", "is shorter than 3");
  refused("", "is shorter than 3", false);
  refused(std::string(64, 'a'), "is longer than 63");
  refused(std::string(256, 'a'), "is longer than 255", false);
  refused("Photos", "is no lower-case letter");
  refused("my_photos", "is no lower-case letter");
  refused("a b", "is no letter", false);
  refused("a%2fb", "is no letter", false);
  refused("a..b", "two dots in a row");
  refused("a..b", "two dots in a row", false);
  refused("-ab", "must begin and end");
  refused("ab.", "must begin and end");
  refused("192.168.5.4", "the form of an IP address");
  refused("xn--abc", "AWS reserves");
  refused("sthree-abc", "AWS reserves");
  refused("photos--use1-az4--x-s3", "directory bucket");
  refused("arn:aws:s3:us-east-1:1:accesspoint", "access point's alias");
}

TEST_CASE("storage/s3/endpoint: bucket and key of a name") {
  const auto found = [](std::string_view name) {
    const s3::object_name parts = s3::parse_object_name(name);
    return std::pair<std::string, std::string>(parts.bucket, parts.key);
  };
  using both = std::pair<std::string, std::string>;
  CHECK(found("s3://bucket/key") == both("bucket", "key"));
  CHECK(found("bucket/train-0000.tar") == both("bucket", "train-0000.tar"));
  CHECK(found("s3://b/a/b?c#d%20e") == both("b", "a/b?c#d%20e"));
  CHECK(found("b//k") == both("b", "/k"));
  CHECK(found("b/k/") == both("b", "k/"));
  CHECK(found("bucket/x:y/z") == both("bucket", "x:y/z"));
  const auto refused = [](const std::string& name, const std::string& sentence) {
    CAPTURE(name);
    CHECK_THROWS_WITH(s3::parse_object_name(name), contains(sentence));
  };
  refused("", "without a key: write s3://bucket/key or bucket/key");
  refused("s3://", "without a key");
  refused("bucket", "without a key");
  refused("bucket/", "without a key");
  refused("/key", "without a bucket");
  refused("s3:///key", "without a bucket");
  for (const std::string name :
       {"s3://AKIA:SECRET@bucket", "s3://bucket?X-Amz-Signature=SECRET", "AKIA:SECRET"})
    try {
      (void)s3::parse_object_name(name);
      FAIL(name);
    } catch (const ps::error& e) {
      CHECK(e.message().find("SECRET") == std::string_view::npos);
    }
  for (const std::string bucket : {"AKIA:SECRET@bucket", "AKIA:SECRET", "bucket?SECRET"})
    CHECK_THROWS_WITH(s3::check_bucket(bucket), contains("has no '@', ':' or '?'") && !contains("SECRET"));
  refused("https://host/key", "'https:' is not the scheme");
  refused("S3://bucket/key", "'S3:' is not the scheme");
  refused("s3:/bucket/key", "'s3:' is not the scheme");
  refused("bucket/" + std::string(1025, 'k'), "at most 1024 bytes");
}

TEST_CASE(
    "storage/s3/endpoint: region and endpoint from options, the environment and profiles, in this order") {
  const penstock_test::temp_dir folder;
  const std::string config = (folder / "config").string(), none = (folder / "none").string();
  std::ofstream(config)
      << "[default]\nregion = of-default\nendpoint_url = http://default\n"
         "[profile team]\nregion = of-team\nservices = here\nendpoint_url = http://team\n"
         "[profile lost]\nservices = nowhere\n"
         "[services here]\nec2 =\n  endpoint_url = http://ec2\ns3 =\n  endpoint_url = http://s3-of-team\n"
         "  addressing_style = path\n";
  using variables = std::vector<std::pair<std::string, std::string>>;
  const auto found = [&](variables more, const std::string& profile, ps::s3_place place = {}) {
    more.insert(more.end(), {{"AWS_CONFIG_FILE", config}, {"AWS_SHARED_CREDENTIALS_FILE", none}});
    const ps::s3_environment environment(std::move(more));
    place = s3::resolved(place, environment, s3::profile_files(environment), profile);
    return place.region + " " + place.endpoint;
  };
  CHECK(found({}, "default") == "of-default http://default");
  CHECK(found({}, "team") == "of-team http://s3-of-team");
  CHECK(found({{"AWS_DEFAULT_REGION", "r1"}}, "team") == "r1 http://s3-of-team");
  CHECK(found({{"AWS_DEFAULT_REGION", "r1"}, {"AWS_REGION", "r2"}}, "team") == "r2 http://s3-of-team");
  CHECK(found({{"AWS_ENDPOINT_URL", "http://e1"}}, "team") == "of-team http://e1");
  CHECK(found({{"AWS_ENDPOINT_URL", "http://e1"}, {"AWS_ENDPOINT_URL_S3", "http://e2"}}, "team") ==
        "of-team http://e2");
  CHECK(found({{"AWS_ENDPOINT_URL", "http://e1"}, {"AWS_REGION", "r2"}}, "team",
              {.region = "r3", .endpoint = "http://e3"}) == "r3 http://e3");
  CHECK(found({{"AWS_ENDPOINT_URL", "http://e1"}, {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "TRUE"}}, "team") ==
        "of-team ");
  CHECK(found({{"AWS_REGION", ""}}, "nobody") == "us-east-1 ");
  CHECK_THROWS_WITH(found({}, "lost"), contains("no section [services nowhere]"));
}
