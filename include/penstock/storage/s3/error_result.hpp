// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<pugixml.hpp>)
#error "penstock/storage/s3/error_result.hpp needs pugixml: link penstock::s3"
#endif

#include <penstock/storage/s3/requests/http_call.hpp>
#include <penstock/storage/s3/requests/xml.hpp>

#include <array>

namespace penstock::inline v0_1 {

/// What can be done about an answer that is an error.
enum class s3_remedy {
  retry,                ///< send it again, after a while
  slow_down,            ///< the same, and send fewer at once
  refresh_credentials,  ///< get new credentials, then send it again
  resync_clock,         ///< take the time from the answer's Date, then send it again
  other_region,         ///< sign for the region that the answer names, then send it again
  none                  ///< the same request would fail again
};

namespace detail::s3 {

/// An answer that is an error. The server's own sentence is left out: it may repeat what was signed.
struct refusal {
  int status = 0;
  std::string code;     // as the store spells it, only letters and digits; empty where the body has none
  std::string request;  // the store's number of the request, for its operators
  std::string region;   // where the bucket is, if the store says so
  s3_remedy remedy = s3_remedy::none;
  std::optional<std::chrono::seconds> retry_after;
  std::optional<wall_time> server_time;
};

/// The remedy for a code; nothing for a code that is not known, whose status decides.
/// Source: Amazon S3 API Reference, "Error responses"; the retry conditions of AWS SDKs' standard mode.
[[nodiscard]] inline std::optional<s3_remedy> remedy_of(std::string_view code) noexcept {
  const auto is = [code](auto... these) { return ((code == these) || ...); };
  // Throttling, ThrottlingException, KMS.ThrottlingException, RequestThrottled and others
  if (code.find("Throttl") != std::string_view::npos ||
      is("SlowDown", "ServiceUnavailable", "Busy", "RequestLimitExceeded", "TooManyRequests",
         "TooManyRequestsException", "BandwidthLimitExceeded", "LimitExceededException"))
    return s3_remedy::slow_down;
  // BadDigest and its like are of a body that changed on its way
  if (is("InternalError", "RequestTimeout", "RequestTimeoutException", "PriorRequestNotComplete",
         "OperationAborted", "ConditionalRequestConflict", "BadDigest", "XAmzContentSHA256Mismatch",
         "XAmzContentChecksumMismatch", "IncompleteBody", "KMS.DependencyTimeoutException",
         "KMS.KMSInternalException", "KMS.KeyUnavailableException", "IDPCommunicationError"))
    return s3_remedy::retry;
  if (is("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"))
    return s3_remedy::refresh_credentials;
  if (is("RequestTimeTooSkewed", "RequestExpired")) return s3_remedy::resync_clock;
  if (is("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"))
    return s3_remedy::other_region;
  if (is("AccessDenied", "NoSuchKey", "NoSuchBucket", "NoSuchUpload", "NoSuchVersion", "InvalidAccessKeyId",
         "InvalidToken", "SignatureDoesNotMatch", "InvalidObjectState", "PreconditionFailed", "InvalidRange",
         "NotImplemented"))
    return s3_remedy::none;
  return std::nullopt;
}
[[nodiscard]] constexpr s3_remedy remedy_of(int status) noexcept {
  if (status == 429 || status == 503) return s3_remedy::slow_down;
  return status > 0 && may_pass(static_cast<unsigned>(status)) ? s3_remedy::retry : s3_remedy::none;
}

/// What a store gave, if it has no other characters than such a value has, so that nothing else is repeated.
[[nodiscard]] inline std::string only(std::string_view given, std::size_t maximum, std::string_view besides) {
  const bool fits = given.size() <= maximum && std::all_of(given.begin(), given.end(), [besides](char c) {
                      return is_digit(c) || is_letter(c) || besides.find(c) != std::string_view::npos;
                    });
  return fits ? std::string(given) : std::string();
}

/// Reads an answer with a status that is no success, or a 200 whose body is an `<Error>`. Any bytes are an
/// answer: one without a body, as to HEAD, is judged by its status. `signed_for` is the region of the
/// request.
[[nodiscard]] inline refusal read_refusal(const http_answer& answer, std::string_view signed_for = {}) {
  refusal found;
  found.status = answer.status;
  if (const auto region = header_of(answer.headers, "x-amz-bucket-region"))
    found.region = only(*region, 64, "-");
  if (const auto id = header_of(answer.headers, "x-amz-request-id")) found.request = only(*id, 128, "-+/=._");
  if (const auto date = header_of(answer.headers, "date")) found.server_time = parse_http_date(*date);
  if (const auto after = header_of(answer.headers, "retry-after")) {
    const bool is_number = parse_digits(*after).has_value();
    if (is_number || found.server_time)
      found.retry_after =
          parse_retry_after(*after, is_number ? 0 : found.server_time->time_since_epoch().count());
  }
  constexpr std::size_t maximum = std::size_t{1} << 20;
  pugi::xml_document document;
  if (!answer.body.empty() && answer.body.size() <= maximum && !load_xml(document, answer.body)) {
    pugi::xml_node body = document.document_element();
    if (std::string_view(body.name()) == "ErrorResponse") body = body.child("Error");  // of STS
    if (std::string_view(body.name()) == "Error") {
      found.code = only(characters_of(body.child("Code")), 64, ".");
      if (found.request.empty()) found.request = only(characters_of(body.child("RequestId")), 128, "-+/=._");
      if (found.region.empty()) found.region = only(characters_of(body.child("Region")), 64, "-");
    }
  }
  found.remedy = remedy_of(found.code).value_or(remedy_of(found.status));
  // The answer to HEAD has no code; and an answer may say nothing about the right region.
  const bool names_another = !found.region.empty() && found.region != signed_for;
  if (found.code.empty() && (found.status == 301 || found.status == 400))
    found.remedy = s3_remedy::other_region;
  if (found.remedy == s3_remedy::other_region && !names_another) found.remedy = s3_remedy::none;
  if (found.remedy == s3_remedy::resync_clock && !found.server_time) found.remedy = s3_remedy::none;
  return found;
}

/// What a person can do about it.
[[nodiscard]] inline std::string_view advice_of(const refusal& found) noexcept {
  struct row {
    std::string_view code, advice;
  };
  static constexpr std::array rows{
      row{"AccessDenied",
          ": the credentials do not permit this, or there is no such object and they may not list"},
      row{"NoSuchKey", ": there is no such object"},
      row{"NoSuchBucket", ": there is no such bucket"},
      row{"NoSuchUpload", ": the upload was aborted or completed before"},
      row{"InvalidAccessKeyId", ": the store does not know these credentials; are they for this endpoint?"},
      row{"InvalidToken", ": the session token is not one of these credentials"},
      row{"SignatureDoesNotMatch",
          ": the secret is not the one of this key id, or a proxy changed the request"},
      row{"InvalidObjectState", ": the object is archived, restore it first"},
      row{"PreconditionFailed", ": the object was replaced while it was read"},
      row{"InvalidRange", ": the object ends before this range"},
      row{"ExpiredToken", ": the session token has expired, get new credentials"},
      row{"ExpiredTokenException", ": the session token has expired, get new credentials"},
      row{"RequestTimeTooSkewed", ": this machine's clock is more than 15 minutes wrong, set it"},
      row{"PermanentRedirect", ": the bucket is in another region"},
      row{"AuthorizationHeaderMalformed",
          ": the bucket is in another region, or the region has another name"},
  };
  for (const row& one : rows)
    if (one.code == found.code) return one.advice;
  switch (found.status) {
    case 301:
      return ": the bucket is in another region, or at another endpoint";
    case 401:
    case 403:
      return ": the credentials are not accepted, or do not permit this";
    case 404:
      return ": there is no such object";
    case 412:
      return ": the object was replaced while it was read";
    case 416:
      return ": the object ends before this range";
    default:
      return "";
  }
}

/// The error for what was refused: errc::io that recurs where there is no remedy. `what` was to happen:
/// "read an object".
[[nodiscard]] inline error error_of(const refusal& found, std::string_view what) {
  std::string line = text({"the store refused to ", what, ": status ", found.status});
  if (!found.code.empty()) append(line, {", ", found.code});
  line += advice_of(found);
  if (found.remedy == s3_remedy::other_region) append(line, {"; it is in ", found.region});
  if (!found.request.empty()) append(line, {" (request ", found.request, ")"});
  error made(errc::io, line);
  static_cast<void>(std::move(made).recurring(found.remedy == s3_remedy::none));
  if (found.remedy == s3_remedy::slow_down) {
    const std::chrono::milliseconds pause = found.retry_after.value_or(std::chrono::seconds(0));
    static_cast<void>(std::move(made).asked_to_wait(static_cast<std::uint64_t>(pause.count())));
  }
  if (found.status == 408 || found.status == 504 || found.code.starts_with("RequestTimeout"))
    static_cast<void>(std::move(made).after_time_out());
  return made;
}

}  // namespace detail::s3

}  // namespace penstock::inline v0_1
