// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3/credential_chain.hpp>

#include "support/catch.hpp"
#include "support/fake_http_call.hpp"
#include "support/temp_dir.hpp"

#include <penstock/core/error.hpp>

#include <cstddef>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace ps = penstock;
namespace s3 = penstock::detail::s3;
using penstock_test::contains;
using penstock_test::fake_http_call;

constexpr const char* token_url = "PUT http://169.254.169.254/latest/api/token";
constexpr const char* roles_url = "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/";
constexpr const char* role_url =
    "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/my-role";
constexpr const char* sts_post = "POST https://sts.eu-west-1.amazonaws.com/";

std::string json_body(const std::string& end = "2026-11-23T18:00:00Z") {
  return R"({"Code": "Success", "LastUpdated": "x", "AccessKeyId": "json id", )"
         R"("SecretAccessKey": "MARKED json secret", )"
         R"("Token": "MARKED json token", "Expiration": ")" +
         end + R"(", "AccountId": 1})";
}
std::string good_json() {
  std::string body = json_body();
  return body.replace(body.find("json id"), 7, "json-id");
}
std::string sts_body(const std::string& action) {
  return "<" + action + "Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><" + action +
         "Result><Credentials>"
         "<AccessKeyId>sts-id</AccessKeyId><SecretAccessKey>MARKED sts secret</SecretAccessKey>"
         "<SessionToken>MARKED sts "
         "token</SessionToken><Expiration>2026-11-23T13:00:00Z</Expiration></Credentials></" +
         action + "Result></" + action + "Response>";
}

/// An environment, two files and a network, none of them this machine's.
class s3_world {
 public:
  s3_world() {
    set("AWS_SHARED_CREDENTIALS_FILE", (folder_ / "credentials").string());
    set("AWS_CONFIG_FILE", (folder_ / "config").string());
    set("AWS_REGION", "eu-west-1");
  }
  s3_world& set(const std::string& name, const std::string& value) {
    for (auto& one : values_)
      if (one.first == name) {
        one.second = value;
        return *this;
      }
    values_.emplace_back(name, value);
    return *this;
  }
  std::string file(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }
  [[nodiscard]] ps::s3_credentials find(const ps::s3_identity& identity = {}) {
    return s3::credential_chain(identity, ps::s3_environment(values_), http.call()).find(now);
  }
  /// The sentence; every one is searched for what was marked.
  std::string refused(std::optional<bool> recurs = std::nullopt, const ps::s3_identity& identity = {}) {
    try {
      (void)find(identity);
    } catch (const ps::error& e) {
      const std::string all = std::string(e.what()) + e.file().data() + e.key().data();
      CHECK(all.find("MARKED") == std::string::npos);
      if (recurs) CHECK(e.recurs() == *recurs);
      return e.what();
    }
    FAIL("there were credentials");
    return "";
  }

  [[nodiscard]] ps::s3_environment environment() const { return ps::s3_environment(values_); }

  penstock_test::fake_http_call http;
  s3::wall_time now = s3::parse_rfc3339("2026-11-23T12:00:00Z").value();

 private:
  penstock_test::temp_dir folder_;
  std::vector<std::pair<std::string, std::string>> values_;
};

std::string header_in(const s3::http_request& request, std::string_view name) {
  return std::string(s3::header_of(request.headers, name).value_or("(none)"));
}

}  // namespace

TEST_CASE("storage/s3/credential_chain: given ones, and nobody") {
  s3_world world;
  world.set("AWS_ACCESS_KEY_ID", "other").set("AWS_SECRET_ACCESS_KEY", "MARKED");
  CHECK(world.find({.credentials = ps::s3_credentials("id", "secret")}).key_id() == "id");
  CHECK(world.find({.credentials = ps::s3_credentials()}).anonymous());
  CHECK_THAT(world.refused(true, {.credentials = ps::s3_credentials("MARKED", "")}),
             contains("what was given has a key id, but no secret"));
  CHECK_THAT(world.refused(true, {.credentials = ps::s3_credentials("", "MARKED", "MARKED")}),
             contains("what was given has a secret, but no key id"));
  CHECK(world.http.requests().empty());
}

TEST_CASE("storage/s3/credential_chain: the environment comes before all other places") {
  s3_world world;
  world.file("credentials",
             "[default]\naws_access_key_id = of-file\naws_secret_access_key = MARKED file secret\n");
  world.set("AWS_ACCESS_KEY_ID", "of-env")
      .set("AWS_SECRET_ACCESS_KEY", "MARKED")
      .set("AWS_SESSION_TOKEN", "MARKED t");
  CHECK(world.find().key_id() == "of-env");
  CHECK(world.find().session_token() == "MARKED t");
  CHECK(world.find({.profile = "default"}).key_id() == "of-file");
  CHECK_THAT(world.set("AWS_SECRET_ACCESS_KEY", "").refused(true),
             contains("AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not"));
  CHECK_THAT(world.set("AWS_SECRET_ACCESS_KEY", "MARKED\n").refused(true),
             contains("the environment has characters"));
  world.set("AWS_SECRET_ACCESS_KEY", "MARKED").set("AWS_ACCESS_KEY_ID", "");
  CHECK_THAT(world.refused(true), contains("AWS_SECRET_ACCESS_KEY is set, but AWS_ACCESS_KEY_ID is not"));
  CHECK(world.set("AWS_SECRET_ACCESS_KEY", "").find().key_id() == "of-file");
  CHECK(world.http.requests().empty());
}

TEST_CASE("storage/s3/credential_chain: web identity asks STS, and reads its token again each time") {
  s3_world world;
  const std::string token = world.file("token", "MARKED/one+\n");
  world.set("AWS_WEB_IDENTITY_TOKEN_FILE", token).set("AWS_ROLE_ARN", "arn:aws:iam::1:role/r");
  world.http.put(sts_post, 200, sts_body("AssumeRoleWithWebIdentity"));
  const ps::s3_credentials found = world.find();
  CHECK(found.key_id() == "sts-id");
  CHECK(found.secret() == "MARKED sts secret");
  CHECK(found.session_token() == "MARKED sts token");
  CHECK(found.expires() == world.now + std::chrono::hours(1));
  CHECK(world.http.last().body ==
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&"
        "RoleSessionName=penstock-" +
            std::to_string(world.now.time_since_epoch().count()) + "&WebIdentityToken=MARKED%2Fone%2B");
  CHECK(header_in(world.http.last(), "authorization") == "(none)");
  CHECK(header_in(world.http.last(), "content-type") == "application/x-www-form-urlencoded; charset=utf-8");
  world.file("token", "MARKED-two");
  (void)world.set("AWS_ROLE_SESSION_NAME", "me").find();
  CHECK_THAT(world.http.last().body, contains("RoleSessionName=me&WebIdentityToken=MARKED-two"));

  world.http.put(sts_post, 400,
                 "<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>MARKED</Message></Error></"
                 "ErrorResponse>");
  CHECK_THAT(world.refused(true),
             contains("refused to give the credentials of a role: status 400, InvalidIdentityToken"));
  world.http.put(sts_post, 503, "");
  CHECK_THAT(world.refused(false), contains("status 503"));
  world.http.put(sts_post, 200, "<MARKED");
  CHECK_THAT(world.refused(false), contains("the answer of STS is not the XML of a store"));
  world.http.put(sts_post, 200, "<MARKED/>");
  CHECK_THAT(world.refused(false), contains("no <Credentials> in a <AssumeRoleWithWebIdentityResult>"));
  std::string no_end = sts_body("AssumeRoleWithWebIdentity");
  no_end.replace(no_end.find("2026-11"), 7, "MARKED!");
  world.http.put(sts_post, 200, no_end);
  CHECK_THAT(world.refused(false), contains("an expiration that is no date"));
  world.file("token", " \n");
  CHECK_THAT(world.refused(true), contains("names a file that holds no token"));
  CHECK_THAT(world.set("AWS_WEB_IDENTITY_TOKEN_FILE", token + "x").refused(true),
             contains("a file that is not there"));
  CHECK_THAT(world.set("AWS_ROLE_ARN", "").refused(true), contains("AWS_ROLE_ARN is not"));
}

TEST_CASE("storage/s3/credential_chain: the endpoint of STS can be another one") {
  s3_world world;
  world.set("AWS_WEB_IDENTITY_TOKEN_FILE", world.file("token", "MARKED")).set("AWS_ROLE_ARN", "arn");
  world.set("AWS_ENDPOINT_URL", "http://minio:9000")
      .http.put("POST http://minio:9000/", 200, sts_body("AssumeRoleWithWebIdentity"));
  CHECK(world.find().key_id() == "sts-id");
  world.set("AWS_ENDPOINT_URL_STS", "https://sts.local/")
      .http.put("POST https://sts.local/", 200, sts_body("AssumeRoleWithWebIdentity"));
  (void)world.find();
  CHECK(world.http.last().to.host == "sts.local");
  CHECK_THAT(world.set("AWS_ENDPOINT_URL_STS", "https://sts.local/?MARKED").refused(true),
             contains("remove what follows https://sts.local/?..."));
  world.set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true").set("AWS_REGION", "cn-north-1");
  world.http.put("POST https://sts.cn-north-1.amazonaws.com.cn/", 200, sts_body("AssumeRoleWithWebIdentity"));
  CHECK(world.find().key_id() == "sts-id");
}

TEST_CASE("storage/s3/credential_chain: profiles with keys, and those that are not supported") {
  s3_world world;
  world.file("credentials",
             "[default]\naws_access_key_id = a\naws_secret_access_key = MARKED a\n"
             "[half]\naws_access_key_id = h\n[other]\naws_secret_access_key = MARKED\n"
             "[broken]\naws_access_key_id = b\naws_secret_access_key = MARKED\n  MARKED\n");
  world.file("config",
             "[profile team]\naws_access_key_id = t\naws_secret_access_key = MARKED t\naws_session_token = "
             "MARKED tt\n"
             "[profile process]\ncredential_process = /bin/MARKED\n[profile sso]\nsso_session = MARKED\n"
             "[profile old-sso]\nsso_start_url = https://MARKED\n[profile login]\nlogin_session = MARKED\n");
  CHECK(world.find().secret() == "MARKED a");
  CHECK(world.find({.profile = "team"}).session_token() == "MARKED tt");
  CHECK(world.set("AWS_PROFILE", "team").find().key_id() == "t");
  for (const auto& [profile, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"half", "the profile 'half' has a key id, but no secret"},
           {"other", "the profile 'other' has a secret, but no key id"},
           {"broken", "the profile 'broken' has characters"},
           {"process", "has its credentials by credential_process, which is not supported: export them"},
           {"sso", "by sso_session, which is not supported"},
           {"old-sso", "by sso_start_url"},
           {"login", "by login_session"},
           {"lost", "AWS_PROFILE names the profile 'lost', which is not in"}})
    CHECK_THAT(world.set("AWS_PROFILE", profile).refused(true), contains(sentence));
  CHECK_THAT(world.refused(true, {.profile = "gone"}), contains("the profile 'gone' is not in"));
  world.file("config", "[default]\nMARKED\n");
  CHECK_THAT(world.refused(true), contains("line 2 of this file of AWS profiles is neither"));
}

TEST_CASE("storage/s3/credential_chain: roles of profiles") {
  s3_world world;
  world.file("credentials",
             "[base]\naws_access_key_id = base-id\naws_secret_access_key = MARKED base\n"
             "[itself]\naws_access_key_id = own-id\naws_secret_access_key = MARKED own\n");
  world.file(
      "config",
      "[profile one]\nrole_arn = arn:one\nsource_profile = base\nexternal_id = ext\nrole_session_name = me\n"
      "[profile two]\nrole_arn = arn:two\nsource_profile = one\n"
      "[profile itself]\nrole_arn = arn:itself\nsource_profile = itself\n"
      "[profile loop]\nrole_arn = arn\nsource_profile = pool\n[profile pool]\nrole_arn = arn\nsource_profile "
      "= loop\n"
      "[profile env]\nrole_arn = arn:env\ncredential_source = Environment\n"
      "[profile ecs]\nrole_arn = arn:ecs\ncredential_source = EcsContainer\n"
      "[profile ec2]\nrole_arn = arn:ec2\ncredential_source = Ec2InstanceMetadata\n"
      "[profile web]\nrole_arn = arn:web\nweb_identity_token_file = " +
          world.file("token", "MARKED web") +
          "\n"
          "[profile both]\nrole_arn = arn\nsource_profile = base\ncredential_source = Environment\n"
          "[profile lost]\nrole_arn = arn\nsource_profile = nobody\n[profile empty]\nregion = r\n"
          "[profile of-empty]\nrole_arn = arn\nsource_profile = empty\n"
          "[profile odd]\nrole_arn = arn\ncredential_source = MARKED\n[profile alone]\nrole_arn = arn\n"
          "[profile mfa]\nrole_arn = arn\nsource_profile = base\nmfa_serial = MARKED\n");
  world.http.put(sts_post, 200, sts_body("AssumeRole"));
  CHECK(world.find({.profile = "one"}).key_id() == "sts-id");
  const auto sent = world.http.last();
  CHECK(sent.body ==
        "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aone&RoleSessionName=me&ExternalId=ext");
  CHECK_THAT(header_in(sent, "authorization"),
             contains("Credential=base-id/20261123/eu-west-1/sts/aws4_request, "
                      "SignedHeaders=content-type;host;x-amz-date, Signature="));
  CHECK(header_in(sent, "x-amz-content-sha256") == "(none)");

  CHECK(world.find({.profile = "two"}).key_id() == "sts-id");
  REQUIRE(world.http.requests().size() == 3);  // the role of the role
  CHECK_THAT(header_in(world.http.last(), "authorization"), contains("Credential=sts-id/"));
  CHECK(header_in(world.http.last(), "x-amz-security-token") == "MARKED sts token");
  CHECK(world.find({.profile = "itself"}).key_id() == "sts-id");
  CHECK_THAT(header_in(world.http.last(), "authorization"), contains("Credential=own-id/"));

  const auto refused = [&](const std::string& profile, const std::string& sentence) {
    CHECK_THAT(world.refused(true, {.profile = profile}), contains(sentence));
  };
  refused("loop", "has itself as its source");
  refused("both", "only one of them can be");
  refused("lost", "has the source_profile 'nobody', which is not in");
  refused("of-empty", "finds no credentials at its source, 'empty'");
  refused("odd", "needs a source_profile, or a credential_source that is");
  refused("alone", "needs a source_profile, or a credential_source that is");
  refused("mfa", "has an mfa_serial");
  refused("env", "finds no credentials at its source, 'Environment'");
  refused("ecs", "finds no credentials at its source, 'EcsContainer'");
  refused("ec2", "finds no credentials at its source, 'Ec2InstanceMetadata'");
  world.set("AWS_ACCESS_KEY_ID", "env-id").set("AWS_SECRET_ACCESS_KEY", "MARKED");
  CHECK(world.find({.profile = "env"}).key_id() == "sts-id");
  CHECK_THAT(header_in(world.http.last(), "authorization"), contains("Credential=env-id/"));
  world.http.put(sts_post, 200, sts_body("AssumeRoleWithWebIdentity"));
  CHECK(world.find({.profile = "web"}).key_id() == "sts-id");
  CHECK_THAT(world.http.last().body, contains("WebIdentityToken=MARKED%20web"));
  world.http.put(sts_post, 403, "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>");
  refused("one", "status 403, AccessDenied");
}

TEST_CASE("storage/s3/credential_chain: a container's service, by a path or a URL") {
  s3_world world;
  world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials?id=MARKED");
  world.http.put("GET http://169.254.170.2/v2/credentials?id=MARKED", 200, good_json());
  const ps::s3_credentials found = world.find();
  CHECK(found.key_id() == "json-id");
  CHECK(found.session_token() == "MARKED json token");
  CHECK(found.expires() == world.now + std::chrono::hours(6));
  CHECK(header_in(world.http.last(), "authorization") == "(none)");
  CHECK_THAT(world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@evil/MARKED").refused(true),
             contains("does not begin with '/'"));
  world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "");

  for (const char* const near :
       {"http://localhost/c", "http://127.0.0.1:51679/c", "http://127.9.9.9/c", "http://[::1]/c",
        "http://169.254.170.2/c", "http://169.254.170.23/v1/credentials", "http://[fd00:ec2::23]/c",
        "http://[FD00:0ec2:0::0023]/c", "https://anywhere.example/c"}) {
    CAPTURE(near);
    world.http.put("GET " + ps::parse_url(near).text(), 200, good_json());
    CHECK(world.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", near).find().key_id() == "json-id");
  }
  const std::size_t asked = world.http.requests().size();
  for (const char* const far :
       {"http://anywhere.example/MARKED", "http://128.0.0.1/", "http://127.0.0.1.evil.example/",
        "http://127.1/", "http://127.0.0.300/", "http://169.254.169.254/", "http://[::2]/",
        "http://[fd00:ec2::24]/", "http://localhost.evil/"}) {
    CAPTURE(far);
    CHECK_THAT(world.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", far).refused(true),
               contains("without encryption: use https"));
  }
  CHECK_THAT(world.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1@evil/").refused(true),
             contains("names a user or a password"));
  CHECK(world.http.requests().size() == asked);
}

TEST_CASE("storage/s3/credential_chain: a container's token, and answers that are none") {
  s3_world world;
  world.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost/c")
      .set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "MARKED plain");
  world.http.put("GET http://localhost/c", 200, good_json());
  (void)world.find();
  CHECK(header_in(world.http.last(), "authorization") == "MARKED plain");
  world.set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", world.file("token", "MARKED of file\r\n"));
  (void)world.find();
  CHECK(header_in(world.http.last(), "authorization") == "MARKED of file");
  world.file("token", "MARKED\r\nx-other: MARKED");
  CHECK_THAT(world.refused(true), contains("holds no token"));
  world.set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "")
      .set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "MARKED\r\nx: y");
  CHECK_THAT(world.refused(true),
             contains("AWS_CONTAINER_AUTHORIZATION_TOKEN has characters that no header can have"));
  world.set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "");

  std::string no_date = json_body("MARKED");
  no_date.replace(no_date.find("json id"), 7, "json-id");
  for (const auto& [body, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"MARKED", "no JSON object"},
           {"[\"MARKED\"]", "no JSON object"},
           {std::string(100'000, '['), "no JSON object"},
           {"{}", "answered without the field AccessKeyId"},
           {R"({"AccessKeyId": "MARKED"})", "answered without the field SecretAccessKey"},
           {R"({"AccessKeyId": ["MARKED"]})", "no text in the field AccessKeyId"},
           {R"({"Code": "AssumeRoleUnauthorizedAccess", "Message": "MARKED"})",
            "has no credentials: AssumeRoleUnauthorizedAccess"},
           {no_date, "an expiration that is no date"},
           {json_body(), "has characters that credentials cannot have"}}) {
    CAPTURE(body.substr(0, 100));
    world.http.put("GET http://localhost/c", 200, body);
    CHECK_THAT(world.refused(), contains(sentence));
  }
  world.http.put("GET http://localhost/c", 403, "MARKED");
  CHECK_THAT(world.refused(true), contains("answered with status 403"));
  world.http.put("GET http://localhost/c", 500, "MARKED");
  CHECK_THAT(world.refused(false), contains("answered with status 500"));
  // The path may hold an id, which is as good as a password.
  for (const char* const nobody : {"http://localhost/d?MARKED", "http://localhost/v2/MARKED"})
    CHECK_THAT(world.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", nobody).refused(false),
               contains("the container's service of credentials at localhost: nobody answers"));
  CHECK_THAT(world.set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost/MARKED here").refused(true),
             contains("AWS_CONTAINER_CREDENTIALS_FULL_URI is no URL"));
}

TEST_CASE("storage/s3/credential_chain: instance metadata, version 2") {
  s3_world world;
  world.http.put(token_url, 200, "MARKED-session");
  world.http.put(roles_url, 200, "my-role\n");
  world.http.put(role_url, 200, good_json());
  CHECK(world.find().key_id() == "json-id");
  const auto sent = world.http.requests();
  REQUIRE(sent.size() == 3);
  CHECK(header_in(sent[0], "x-aws-ec2-metadata-token-ttl-seconds") == "21600");
  CHECK(header_in(sent[1], "x-aws-ec2-metadata-token") == "MARKED-session");
  CHECK(header_in(sent[2], "x-aws-ec2-metadata-token") == "MARKED-session");
  for (const auto& one : sent) CHECK(one.deadline == std::chrono::seconds(1));

  CHECK_THAT(world.set("AWS_EC2_METADATA_DISABLED", "TRUE").refused(true),
             contains("there are no credentials for S3"));
  CHECK(world.http.requests().size() == 3);
  world.set("AWS_EC2_METADATA_DISABLED", "");
  world.http.put(role_url, 500, "MARKED");
  CHECK_THAT(world.refused(false), contains("the instance metadata answered with status 500"));
  for (const char* const name : {"", "\n", "a/../b", "MARKED?x", "a b"}) {
    world.http.put(roles_url, 200, name);
    CHECK_THAT(world.refused(false), contains("no name of a role"));
  }
  world.http.put(roles_url, 404, "");
  CHECK_THAT(world.refused(true), contains("there are no credentials for S3"));
  world.http.put(token_url, 403, "");
  CHECK_THAT(world.refused(true), contains("there are no credentials for S3"));
  world.set("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://[fd00:ec2::254]");
  CHECK_THAT(world.refused(true), contains(".credentials = s3_credentials()"));  // nobody answers there
  CHECK(world.http.last().to.host == "fd00:ec2::254");
}

TEST_CASE("storage/s3/credential_chain: instance metadata that loses requests now and then") {
  s3_world world;
  // A machine of another kind: nobody there, or all packets are dropped.
  CHECK_THAT(world.refused(true), contains("no instance metadata"));
  CHECK(world.http.requests().size() == 1);
  world.http.lose(token_url, 9);
  CHECK_THAT(world.refused(true), contains("no instance metadata"));
  CHECK(world.http.requests().size() == 3);

  fake_http_call http;
  http.put(token_url, 200, "MARKED-session");
  http.put(roles_url, 200, "my-role");
  http.put(role_url, 200, good_json());
  s3::credential_chain chain({}, world.environment(), http.call());
  http.lose(token_url);
  http.lose(role_url, 2);
  CHECK(chain.find(world.now).key_id() == "json-id");
  // One that has answered is there, so what it loses is no lack of credentials.
  http.lose(token_url, 2);
  CHECK(chain.find(world.now).key_id() == "json-id");
  const std::size_t before = http.requests().size();
  http.lose(token_url, 3);
  try {
    (void)chain.find(world.now);
    FAIL("there were credentials");
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::io);
    CHECK_FALSE(e.recurs());
    CHECK_THAT(e.what(), contains("the instance metadata does not answer any more: no answer within"));
  }
  CHECK(http.requests().size() == before + 3);
  CHECK(chain.find(world.now).key_id() == "json-id");
}

TEST_CASE("storage/s3/credential_chain: a role is asked for once more if this machine's clock is wrong") {
  s3_world world;
  world.file("config",
             "[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = keys\n[profile keys]\n"
             "aws_access_key_id = id\naws_secret_access_key = MARKED\n");
  world.http.put(sts_post, 200, sts_body("AssumeRole"));
  const auto refuse = [&](std::string_view code, const char* date) {
    world.http.once(sts_post, {403,
                               {{"Date", date}},
                               "<ErrorResponse><Error><Code>" + std::string(code) +
                                   "</Code><Message>MARKED</Message></Error></ErrorResponse>"});
  };
  std::optional<s3::wall_time> told;
  const s3::clock_listener listener{
      &told, [](void* self, s3::wall_time t) { *static_cast<std::optional<s3::wall_time>*>(self) = t; }};
  const auto find = [&] {
    return s3::credential_chain({}, world.environment(), world.http.call(), listener).find(world.now);
  };
  for (const char* const code : {"SignatureDoesNotMatch", "RequestExpired"}) {
    told.reset();
    refuse(code, "Mon, 23 Nov 2026 20:00:00 GMT");
    CHECK(find().key_id() == "sts-id");
    CHECK(header_in(world.http.last(), "x-amz-date") == "20261123T200000Z");
    CHECK(told == s3::parse_rfc3339("2026-11-23T20:00:00Z"));
  }
  // A wrong signature at the right time, a second refusal, and one without a date are errors.
  const std::size_t before = world.http.requests().size();
  refuse("SignatureDoesNotMatch", "Mon, 23 Nov 2026 12:01:00 GMT");
  CHECK_THAT(world.refused(true), contains("SignatureDoesNotMatch"));
  CHECK(world.http.requests().size() == before + 1);
  refuse("RequestExpired", "Mon, 23 Nov 2026 20:00:00 GMT");
  refuse("RequestExpired", "Mon, 23 Nov 2026 20:00:00 GMT");
  CHECK_THAT(world.refused(), contains("RequestExpired"));
  CHECK(world.http.requests().size() == before + 3);
  refuse("RequestExpired", "now");
  CHECK_THAT(world.refused(true), contains("RequestExpired"));
}

TEST_CASE("storage/s3/credential_chain: the order of places") {
  s3_world world;
  world.http.put(token_url, 200, "t");
  world.http.put(roles_url, 200, "my-role");
  std::string body = good_json();
  world.http.put(role_url, 200, body.replace(body.find("json-id"), 7, "of-imds"));
  CHECK(world.find().key_id() == "of-imds");
  world.set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/c")
      .http.put("GET http://169.254.170.2/c", 200, good_json());
  CHECK(world.find().key_id() == "json-id");
  world.file("config", "[default]\naws_access_key_id = of-file\naws_secret_access_key = s\n");
  CHECK(world.find().key_id() == "of-file");
  world.set("AWS_WEB_IDENTITY_TOKEN_FILE", world.file("token", "t")).set("AWS_ROLE_ARN", "arn");
  world.http.put(sts_post, 200, sts_body("AssumeRoleWithWebIdentity"));
  CHECK(world.find().key_id() == "sts-id");
  CHECK(world.find({.profile = "default"}).key_id() == "of-file");
  world.set("AWS_ACCESS_KEY_ID", "of-env").set("AWS_SECRET_ACCESS_KEY", "s");
  CHECK(world.find().key_id() == "of-env");
}
