// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3/multipart.hpp>

#include "support/catch.hpp"

#include <penstock/core/error.hpp>

#include <string>
#include <vector>

namespace ps = penstock;
namespace s3 = penstock::detail::s3;
using penstock_test::contains;

TEST_CASE("storage/s3/multipart: the id of an upload") {
  CHECK(s3::read_upload_id(
            "<?xml version=\"1.0\"?><InitiateMultipartUploadResult xmlns=\"x\"><Bucket>b</Bucket><Key>k</Key>"
            "<UploadId>VXBsb2Fk&amp;Cg--</UploadId></InitiateMultipartUploadResult>") == "VXBsb2Fk&Cg--");
  CHECK_THROWS_WITH(s3::read_upload_id("<InitiateMultipartUploadResult/>"), contains("has no <UploadId>"));
  CHECK_THROWS_WITH(s3::read_upload_id("<Error/>"), contains("another root"));
  CHECK_THROWS_WITH(s3::read_upload_id("<Initiate"), contains("is not the XML of a store"));
}

TEST_CASE("storage/s3/multipart: the request that completes it, which reads back as what was said") {
  const std::vector<std::string> etags{"\"a54357aff0632cce46d942af68356b38\"", "<&>"};
  const std::string body = s3::completion_of(etags);
  CHECK(body ==
        "<CompleteMultipartUpload "
        "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Part><PartNumber>1</PartNumber><ETag>"
        "&quot;a54357aff0632cce46d942af68356b38&quot;</ETag></Part><Part><PartNumber>2</"
        "PartNumber><ETag>&lt;&amp;&gt;"
        "</ETag></Part></CompleteMultipartUpload>");
  pugi::xml_document document;
  REQUIRE_FALSE(s3::load_xml(document, body));
  CHECK(s3::characters_of(document.document_element().last_child().child("ETag")) == "<&>");
  CHECK_THROWS_WITH(s3::completion_of({}), contains("1 to 10000 parts, not 0"));
  CHECK_THROWS_WITH(s3::completion_of(std::vector<std::string>(10'001, "e")), contains("not 10001"));
  CHECK_THROWS_WITH(s3::completion_of(std::vector<std::string>{"e", ""}),
                    contains("part 2 of the upload has no ETag"));
  CHECK_THROWS_WITH(s3::completion_of(std::vector<std::string>{"e\n"}),
                    contains("part 1 of the upload has no ETag"));
}

TEST_CASE("storage/s3/multipart: the ETag of the object is made of those of its parts, if they are MD5s") {
  // printf 'a' and 'b' by md5sum; then of the two sums' bytes.
  const std::string a = "0cc175b9c0f1b6a831c399e269772661", b = "92eb5ffee6ae2fec3ad71c777531578f";
  const std::string both = "\"96e024ba2074fe77e8e965ba43a704be-2\"";
  CHECK(s3::tag_of_parts(std::vector<std::string>{"\"" + a + "\"", b}) == both);
  CHECK(s3::tag_of_parts(std::vector<std::string>{"\"0CC175B9C0F1B6A831C399E269772661\"", b}) == both);
  CHECK(s3::tag_of_parts(std::vector<std::string>{a + "-1", b}).empty());
  CHECK(s3::tag_of_parts(std::vector<std::string>{"\"z" + a.substr(1) + "\"", b}).empty());
  CHECK(s3::tag_of_parts(std::vector<std::string>{""}).empty());
}

TEST_CASE("storage/s3/multipart: how it ended, though the status was 200 from the start") {
  const auto ended = [](int status, std::string body) {
    return s3::read_completion({status, {}, std::move(body)});
  };
  const std::string good =
      "<CompleteMultipartUploadResult "
      "xmlns=\"x\"><ETag>&quot;e-2&quot;</ETag></CompleteMultipartUploadResult>";
  CHECK(ended(200, good) == "\"e-2\"");
  CHECK(ended(200, " \n  \n<?xml version=\"1.0\" encoding=\"UTF-8\"?>" + good) == "\"e-2\"");
  const auto recurs = [&](int status, const std::string& body) {
    try {
      (void)ended(status, body);
    } catch (const ps::error& e) {
      CHECK_THAT(e.what(), contains("the store refused to complete an upload"));
      return e.recurs();
    }
    FAIL("it was taken");
    return false;
  };
  CHECK_FALSE(recurs(200, "  <Error><Code>InternalError</Code></Error>"));
  CHECK_FALSE(recurs(200, "<Error><Code>SomethingNew</Code></Error>"));
  CHECK(recurs(200, "<Error><Code>NoSuchUpload</Code></Error>"));
  CHECK(recurs(404, "<Error><Code>NoSuchUpload</Code></Error>"));
  CHECK_FALSE(recurs(503, ""));
  CHECK_THROWS_WITH(ended(200, ""), contains("is not the XML of a store"));
  CHECK_THROWS_WITH(ended(200, "<CompleteMultipartUploadResult/>"), contains("has no <ETag>"));
}
