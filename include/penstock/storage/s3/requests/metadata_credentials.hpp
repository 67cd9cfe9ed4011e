// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/storage/resilience/retry_policy.hpp>
#include <penstock/storage/s3/requests/credential_answers.hpp>
#include <penstock/storage/url.hpp>

#include <arpa/inet.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1::detail::s3 {

/// Whether a service of credentials may be asked without encryption: it is on this machine, or has one of the
/// addresses of ECS and EKS.
[[nodiscard]] inline bool is_near(const std::string& host) {
  if (host == "localhost") return true;
  std::array<unsigned char, 4> four{};
  if (::inet_pton(AF_INET, host.c_str(), four.data()) == 1)
    return four[0] == 127 || host == "169.254.170.2" || host == "169.254.170.23";
  std::array<unsigned char, 16> given{}, near{};
  if (::inet_pton(AF_INET6, host.c_str(), given.data()) != 1) return false;
  for (const char* const address : {"::1", "fd00:ec2::23"})
    if (::inet_pton(AF_INET6, address, near.data()) == 1 && given == near) return true;
  return false;
}

/// What a container's variable names. Its path may hold an id that gives credentials to whoever knows it, so
/// no error shows it.
[[nodiscard]] inline url container_url(std::string_view text, std::string_view variable) {
  try {
    return parse_url(text);
  } catch (const error& e) {
    if (e.message().find("names a user or a password") != std::string_view::npos) throw;
    throw error(errc::argument, {variable,
                                 " is no URL of http or https, or has characters that must be "
                                 "percent-encoded"});
  }
}
/// Asks it; the errors of `http` name the host instead of the URL.
[[nodiscard]] inline http_answer ask_container(const http_call& http, const http_request& request,
                                               std::string_view source) {
  try {
    return http(request);
  } catch (const error& e) {
    const std::string_view why = e.message(), path = request.to.path;
    const bool shows = path.size() > 1 && why.find(path) != std::string_view::npos;
    throw error(e.code(), {source, " at ", request.to.authority(), ": ", shows ? "nobody answers" : why})
        .recurring(e.recurs());
  }
}

/// The service of a container: ECS, EKS Pod Identity, and what imitates them.
[[nodiscard]] inline std::optional<s3_credentials> of_container(const credential_surroundings& with) {
  constexpr std::string_view source = "the container's service of credentials";
  const auto relative = with.environment.value("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const auto full = with.environment.value("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!relative && !full) return std::nullopt;
  http_request request;
  if (relative) {
    if (!relative->starts_with('/'))
      throw error(errc::argument, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with '/'");
    request.to = container_url("http://169.254.170.2" + std::string(*relative),
                               "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  } else {
    request.to = container_url(*full, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (request.to.scheme != "https" && (request.to.scheme != "http" || !is_near(request.to.host)))
      throw error(errc::argument, {"AWS_CONTAINER_CREDENTIALS_FULL_URI names the host '", request.to.host,
                                   "' without encryption: use https, or a service on this machine"});
  }
  std::string token(with.environment.value("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or(""));
  if (const auto file_name = with.environment.value("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"))
    token = token_in(std::string(*file_name), "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  if (!fits_into_header(token))
    throw error(errc::argument, "AWS_CONTAINER_AUTHORIZATION_TOKEN has characters that no header can have");
  request.headers = {{"accept", "application/json"}};
  if (!token.empty()) request.headers.push_back({"authorization", token});
  request.deadline = std::chrono::seconds(2);
  const http_answer answer = ask_container(with.http, request, source);
  if (answer.status != 200)
    throw error(errc::io, {source, " answered with status ", answer.status})
        .recurring(remedy_of(answer.status) == s3_remedy::none);
  return read_json_credentials(answer.body, source);
}

/// The instance metadata of EC2, version 2 only. Nothing if this is no such machine, or has no role. Its
/// services lose a request now and then: one without an answer is sent up to three times, and is an error
/// that may pass if there ever was an answer.
[[nodiscard]] inline std::optional<s3_credentials> of_instance(const credential_surroundings& with) {
  constexpr std::string_view source = "the instance metadata";
  if (equal_but_for_case(with.environment.value("AWS_EC2_METADATA_DISABLED").value_or(""), "true"))
    return std::nullopt;
  const url base = parse_url(
      with.environment.value("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("http://169.254.169.254"));
  bool answers = with.metadata_answers != nullptr && *with.metadata_answers;
  const auto ask = [&](std::string method, std::string_view path, name_value header) {
    http_request request;
    request.method = std::move(method);
    request.to = base;
    request.to.path = path;
    request.to.query.clear();
    request.headers.push_back(std::move(header));
    request.deadline = std::chrono::seconds(1);  // a machine that is not of EC2 may drop the packets
    // Elsewhere nobody is there, which shows at once, or packets are dropped.
    const bool sure = answers;
    return retrier({.attempts = sure ? 3u : 2u}).insist([&] {
      try {
        http_answer found = with.http(request);
        if (found.status == 200) answers = true;
        if (answers && with.metadata_answers != nullptr) *with.metadata_answers = true;
        return found;
      } catch (error& e) {
        if (!sure && !e.timed_out()) std::move(e).recurring();
        throw;
      }
    });
  };
  http_answer token;
  try {
    token = ask("PUT", "/latest/api/token", {"x-aws-ec2-metadata-token-ttl-seconds", "21600"});
  } catch (const error& e) {
    if (e.code() != errc::io) throw;
    if (answers) throw error(errc::io, {source, " does not answer any more: ", e.message()});
    return std::nullopt;
  }
  if (token.status == 429 || token.status >= 500)  // it is there, and busy
    throw error(errc::io, {source, " answered with status ", token.status});
  if (token.status != 200 || token.body.empty() || !fits_into_header(token.body)) return std::nullopt;
  const name_value proof{"x-aws-ec2-metadata-token", token.body};
  std::string path = "/latest/meta-data/iam/security-credentials/";
  const http_answer roles = ask("GET", path, proof);
  if (roles.status == 404) return std::nullopt;
  const std::string role =
      only(trimmed(std::string_view(roles.body).substr(0, roles.body.find_first_of("\r\n"))), 128, "+=,.@-_");
  if (roles.status != 200 || role.empty())
    throw error(errc::io, {source, " answered with status ", roles.status, ", and with no name of a role"});
  append_encoded(path, role);
  const http_answer found = ask("GET", path, proof);
  if (found.status != 200) throw error(errc::io, {source, " answered with status ", found.status});
  return read_json_credentials(found.body, source);
}

}  // namespace penstock::inline v0_1::detail::s3
