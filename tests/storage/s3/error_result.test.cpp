// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3/error_result.hpp>

#include "support/catch.hpp"

#include <penstock/core/error.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace ps = penstock;
namespace s3 = penstock::detail::s3;
using fix = ps::s3_remedy;
using penstock_test::contains;

std::string error_body(std::string_view code, std::string_view more = "") {
  std::string body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>";
  return body.append(code)
      .append(
          "</Code><Message>MARKED</Message><Resource>/b/MARKED</Resource>"
          "<StringToSign>MARKED</StringToSign><RequestId>4442587FB7D0A2F9</RequestId>")
      .append(more)
      .append("</Error>");
}
s3::refusal refusal_of(int status, std::string body, std::vector<s3::name_value> headers = {},
                       std::string_view signed_for = "us-east-1") {
  return s3::read_refusal({status, std::move(headers), std::move(body)}, signed_for);
}

}  // namespace

TEST_CASE("storage/s3/error_result: an error says that the store asked for fewer requests, or was late") {
  s3::refusal found;
  found.status = 503;
  found.remedy = ps::s3_remedy::slow_down;
  CHECK(s3::error_of(found, "read").retry_after_ms() == 0);
  found.retry_after = std::chrono::seconds(7);
  CHECK(s3::error_of(found, "read").retry_after_ms() == 7000);
  CHECK_FALSE(s3::error_of(found, "read").timed_out());
  found = {};
  found.status = 408;
  CHECK(s3::error_of(found, "read").timed_out());
  CHECK_FALSE(s3::error_of(found, "read").retry_after_ms().has_value());
}

TEST_CASE("storage/s3/error_result: the remedy for each code") {
  struct row {
    int status;
    const char* code;
    ps::s3_remedy remedy;
  };
  for (const row& one : {row{503, "SlowDown", fix::slow_down},
                         row{503, "ServiceUnavailable", fix::slow_down},
                         row{400, "ThrottlingException", fix::slow_down},
                         row{400, "Throttling", fix::slow_down},
                         row{429, "TooManyRequests", fix::slow_down},
                         row{400, "BandwidthLimitExceeded", fix::slow_down},
                         row{500, "InternalError", fix::retry},
                         row{400, "RequestTimeout", fix::retry},
                         row{400, "PriorRequestNotComplete", fix::retry},
                         row{409, "OperationAborted", fix::retry},
                         row{400, "ExpiredToken", fix::refresh_credentials},
                         row{403, "ExpiredTokenException", fix::refresh_credentials},
                         row{403, "AccessDenied", fix::none},
                         row{404, "NoSuchKey", fix::none},
                         row{404, "NoSuchBucket", fix::none},
                         row{403, "InvalidAccessKeyId", fix::none},
                         row{403, "SignatureDoesNotMatch", fix::none},
                         row{403, "InvalidObjectState", fix::none},
                         row{412, "PreconditionFailed", fix::none},
                         row{416, "InvalidRange", fix::none},
                         row{400, "SomethingNew", fix::none},
                         row{500, "SomethingNew", fix::retry},
                         row{502, "", fix::retry},
                         row{504, "", fix::retry},
                         row{503, "", fix::slow_down},
                         row{429, "", fix::slow_down},
                         row{408, "", fix::retry},
                         row{403, "", fix::none},
                         row{404, "", fix::none},
                         row{412, "", fix::none},
                         row{416, "", fix::none},
                         row{501, "NotImplemented", fix::none},
                         row{400, "BadDigest", fix::retry},
                         row{400, "XAmzContentSHA256Mismatch", fix::retry},
                         row{400, "IncompleteBody", fix::retry},
                         row{400, "KMS.ThrottlingException", fix::slow_down},
                         row{400, "RequestThrottled", fix::slow_down},
                         row{400, "KMS.KMSInternalException", fix::retry},
                         row{400, "KMS.DisabledException", fix::none},
                         row{501, "", fix::none},
                         row{505, "", fix::none},
                         row{507, "", fix::retry},
                         row{509, "", fix::retry},
                         row{520, "", fix::retry},
                         row{599, "", fix::retry}}) {
    CAPTURE(one.status, one.code);
    const s3::refusal found = refusal_of(one.status, *one.code == '\0' ? "" : error_body(one.code));
    CHECK(found.remedy == one.remedy);
    CHECK(found.code == one.code);
    const ps::error shown = s3::error_of(found, "read an object");
    CHECK(shown.code() == ps::errc::io);
    CHECK(shown.recurs() == (one.remedy == fix::none));
    CHECK(std::string(shown.what()).find("MARKED") == std::string::npos);
    CHECK_THAT(shown.what(),
               contains("the store refused to read an object: status " + std::to_string(one.status)));
  }
}

TEST_CASE("storage/s3/error_result: another region, as AWS, others and answers to HEAD name it") {
  CHECK(refusal_of(301, error_body("PermanentRedirect"), {{"x-amz-bucket-region", "eu-west-1"}}).remedy ==
        fix::other_region);
  const s3::refusal found =
      refusal_of(400, error_body("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"));
  CHECK(found.remedy == fix::other_region);
  CHECK(found.region == "eu-west-1");
  CHECK_THAT(s3::error_of(found, "list").what(), contains("it is in eu-west-1"));
  CHECK(refusal_of(301, "", {{"X-Amz-Bucket-Region", "eu-west-1"}}).remedy == fix::other_region);
  CHECK(refusal_of(400, "", {{"x-amz-bucket-region", "eu-west-1"}}).remedy == fix::other_region);
  // The right region, none, or one that cannot be: asking again would not end.
  CHECK(refusal_of(400, "", {{"x-amz-bucket-region", "us-east-1"}}).remedy == fix::none);
  CHECK(refusal_of(400, error_body("AuthorizationHeaderMalformed", "<Region>us-east-1</Region>")).remedy ==
        fix::none);
  CHECK(refusal_of(301, error_body("PermanentRedirect")).remedy == fix::none);
  CHECK(refusal_of(301, "", {{"x-amz-bucket-region", "evil.com/"}}).remedy == fix::none);
  CHECK(refusal_of(403, "", {{"x-amz-bucket-region", "eu-west-1"}}).remedy == fix::none);
}

TEST_CASE("storage/s3/error_result: the server's time, and how long it asks to wait") {
  const std::vector<s3::name_value> date{{"Date", "Mon, 23 Nov 2026 12:00:00 GMT"}};
  const s3::refusal skewed = refusal_of(403, error_body("RequestTimeTooSkewed"), date);
  CHECK(skewed.remedy == fix::resync_clock);
  CHECK(skewed.server_time == s3::parse_rfc3339("2026-11-23T12:00:00Z"));
  CHECK(refusal_of(403, error_body("RequestTimeTooSkewed")).remedy == fix::none);
  CHECK_THAT(s3::error_of(skewed, "list").what(), contains("clock is more than 15 minutes wrong"));
  const auto waits = [&](const char* value) {
    auto headers = date;
    headers.push_back({"retry-after", value});
    const auto found = refusal_of(503, "", headers).retry_after;
    return found ? found->count() : -1;
  };
  CHECK(waits("0") == 0);
  CHECK(waits(" 120 ") == 120);
  CHECK(waits("Mon, 23 Nov 2026 12:00:30 GMT") == 30);
  CHECK(waits("Mon, 23 Nov 2026 11:00:30 GMT") == 0);
  CHECK(waits("999999") == 86'400);  // a day at most
  CHECK(waits("Mon, 23 Nov 2066 11:00:30 GMT") == 86'400);
  for (const char* const wrong : {"", "-1", "1.5", "soon", "99999999999999999999"}) CHECK(waits(wrong) == -1);
}

TEST_CASE("storage/s3/error_result: an answer of any bytes is an answer, and nothing strange is repeated") {
  for (const std::string& body :
       {std::string("<html>502"), std::string("\0\xFF", 2), std::string(2u << 20, 'x'),
        std::string("<Error>"), std::string("<!DOCTYPE a><Error><Code>NoSuchKey</Code></Error>"),
        std::string("<Error><Code>No such key</Code></Error>"), error_body(std::string(65, 'c')),
        error_body("&lt;script&gt;"), error_body("a\nb")}) {
    const s3::refusal found = refusal_of(500, body);
    CHECK(found.code.empty());
    CHECK(found.remedy == fix::retry);
  }
  const s3::refusal odd =
      refusal_of(404, error_body("NoSuchKey"), {{"x-amz-request-id", "a b\x01"}, {"x-amz-request-id", "2"}});
  CHECK(odd.request == "4442587FB7D0A2F9");
  CHECK(refusal_of(404, error_body("NoSuchKey"), {{"x-amz-request-id", "tx00-1/+=._"}}).request ==
        "tx00-1/+=._");
  CHECK_THAT(s3::error_of(odd, "read an object").what(),
             contains("NoSuchKey: there is no such object (request 4442587FB7D0A2F9)"));
  const s3::refusal sts =
      refusal_of(403,
                 "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error>"
                 "<Type>Sender</Type><Code>ExpiredTokenException</Code></Error></ErrorResponse>");
  CHECK(sts.remedy == fix::refresh_credentials);
}
