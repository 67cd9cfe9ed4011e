// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/storage/s3/aws_signature.hpp>
#include <penstock/storage/s3/endpoint.hpp>
#include <penstock/storage/s3/requests/credential_answers.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail::s3 {

/// A role to take on.
struct role_request {
  std::string arn;
  std::string session;      // empty: a name is made
  std::string external_id;  // may be empty
};

[[nodiscard]] inline url sts_url(const credential_surroundings& with) {
  auto given = with.environment.value("AWS_ENDPOINT_URL_STS");
  if (!given) given = with.environment.value("AWS_ENDPOINT_URL");
  if (equal_but_for_case(with.environment.value("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").value_or(""), "true"))
    given.reset();
  if (given) {
    const url found = parse_url(*given);
    if (!found.query.empty())
      throw error(errc::argument, {"AWS_ENDPOINT_URL_STS or AWS_ENDPOINT_URL has a query, which no signature "
                                   "covers: remove what follows ",
                                   found.without_secrets()});
    return found;
  }
  url made;
  made.scheme = "https";
  made.host = text({"sts.", with.region, ".", aws_domain(with.region)});
  made.path = "/";
  return made;
}

/// Whether a request was refused because this machine's clock is wrong. STS says so by the code of a wrong
/// signature, too; then the clocks must differ by most of the five minutes that STS allows.
[[nodiscard]] inline bool refuses_clock(const refusal& found, wall_time now) {
  if (!found.server_time) return false;
  if (found.remedy == s3_remedy::resync_clock) return true;
  const auto apart = std::max(*found.server_time - now, now - *found.server_time);
  return apart > std::chrono::minutes(4) &&
         (found.code == "SignatureDoesNotMatch" || found.code == "InvalidSignatureException" ||
          found.code == "RequestInTheFuture" || found.code == "AuthFailure");
}

/// Sends an action of STS, signed unless `as` is anonymous, and reads its credentials. A request that is
/// refused because of the time is sent once more, with that of the answer.
[[nodiscard]] inline s3_credentials ask_sts(const credential_surroundings& with, std::string_view action,
                                            const role_request& role, std::span<const name_value> more,
                                            const s3_credentials& as) {
  check_region(with.region);
  http_request request;
  request.method = "POST";
  request.to = sts_url(with);
  request.deadline = std::chrono::seconds(10);
  request.headers = {{"content-type", "application/x-www-form-urlencoded; charset=utf-8"}};
  const std::string made = text({"penstock-", with.now.time_since_epoch().count()});
  std::vector<name_value> form{{"Action", std::string(action)},
                               {"Version", "2011-06-15"},
                               {"RoleArn", role.arn},
                               {"RoleSessionName", role.session.empty() ? made : role.session}};
  if (!role.external_id.empty()) form.push_back({"ExternalId", role.external_id});
  form.insert(form.end(), more.begin(), more.end());
  for (const name_value& one : form) {
    if (!request.body.empty()) request.body += '&';
    append_encoded(request.body, one.name);
    request.body += '=';
    append_encoded(request.body, one.value);
  }
  const auto ask = [&](wall_time now) {
    http_request sent = request;
    if (!as.anonymous()) {
      aws_signer signer(with.region, "sts");
      const std::string host = request.to.authority(), hash = payload_hash(request.body);
      signed_request made_of;
      signer.sign({"POST", host, request.to.path, {}, request.headers, hash}, as, now, made_of);
      sent.headers.insert(sent.headers.end(), made_of.headers.begin(), made_of.headers.end());
    }
    return with.http(sent);
  };
  http_answer answer = ask(with.now);
  if (answer.status != 200 && !as.anonymous()) {
    const refusal found = read_refusal(answer, with.region);
    if (refuses_clock(found, with.now)) {
      with.clock(*found.server_time);
      answer = ask(*found.server_time);
    }
  }
  if (answer.status != 200)
    throw error_of(read_refusal(answer, with.region), "give the credentials of a role");
  return read_sts_credentials(answer.body, text({action, "Result"}).c_str());
}

/// Reads the token again each time: whoever made it renews it.
[[nodiscard]] inline s3_credentials web_identity(const credential_surroundings& with,
                                                 const role_request& role, const std::string& token_file,
                                                 std::string_view named_by) {
  const std::vector<name_value> token{{"WebIdentityToken", token_in(token_file, named_by)}};
  return ask_sts(with, "AssumeRoleWithWebIdentity", role, token, {});
}

/// AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN.
[[nodiscard]] inline std::optional<s3_credentials> web_identity(const credential_surroundings& with) {
  const auto file_name = with.environment.value("AWS_WEB_IDENTITY_TOKEN_FILE");
  const auto arn = with.environment.value("AWS_ROLE_ARN");
  if (!file_name) return std::nullopt;
  if (!arn) throw error(errc::argument, "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not");
  const std::string session(with.environment.value("AWS_ROLE_SESSION_NAME").value_or(""));
  return web_identity(with, {std::string(*arn), session, {}}, std::string(*file_name),
                      "AWS_WEB_IDENTITY_TOKEN_FILE");
}

}  // namespace penstock::inline v0_1::detail::s3
