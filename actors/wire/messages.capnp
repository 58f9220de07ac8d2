# The wire form of actors/protocol/messages.hpp; codec.hpp says what it promises. The fields have the
# names and the meaning of the values there. Members of one run have one version of this program, so
# numbers may be given anew; tags follow the order of the variants.
#
# Tag 0 is nothing: memory full of zeros is no message.

@0xb9ccd00341fc525f;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::actors::wire::schema");

struct Message {
  union {
    nothing @0 :Void;
    planNotice @1 :Text;
    bulkAddress @2 :Data;
    ready @3 :Void;
    go @4 :Void;
    sumHeld @5 :SumHeld;
    vote @6 :Vote;
    recordNotice @7 :RecordNotice;
    recorded @8 :UInt64;
    validationShare @9 :ValidationShare;
    saveRequest @10 :SaveRequest;
    saveShare @11 :SaveShare;
    heartbeat :group {
      step @12 :UInt64;
      doing @13 :Phase;
    }
    stopWish @14 :Text;
    farewell @15 :Farewell;
    addressTable @16 :List(MemberAddress);
  }
}

struct BulkHeader {
  union {
    nothing @0 :Void;
    node @1 :NodeHeader;
    sum @2 :SumHeader;
    parameters @3 :ParametersHeader;
  }
}

enum Phase {
  starting @0;
  computing @1;
  waiting @2;
  validating @3;
  saving @4;
  ending @5;
}

# Where many are sent in a step, a hash stands as two fields instead: no pointer, a third fewer bytes.
struct Hash {
  high @0 :UInt64;
  low @1 :UInt64;
}

struct LeafLoss {
  leaf @0 :UInt32;
  lossSum @1 :Float64;
  tokens @2 :Float64;
}

struct BlockSum {
  layer @0 :UInt32;
  block @1 :UInt32;
  hashHigh @2 :UInt64;
  hashLow @3 :UInt64;
  squares @4 :Float64;
}

struct SumHeld {
  step @0 :UInt64;
  layer @1 :UInt32;
  block @2 :UInt32;
  hashHigh @3 :UInt64;
  hashLow @4 :UInt64;
}

struct StepFacts {
  data @0 :Float64;
  forward @1 :Float64;
  backward @2 :Float64;
  reduce @3 :Float64;
  apply @4 :Float64;
  wait @5 :Float64;
  controlBytes @6 :UInt64;
  bulkBytes @7 :UInt64;
  peakMemory @8 :UInt64;
  activationBytes @9 :UInt64;
}

struct Vote {
  step @0 :UInt64;
  sums @1 :List(BlockSum);
  losses @2 :List(LeafLoss);
  facts @3 :StepFacts;
}

struct DecisionRecord {
  step @0 :UInt64;
  updates @1 :UInt64;
  skip @2 :Bool;
  whySkipped @3 :Text;
  scale @4 :Float32;
  lr @5 :Float32;
  loss @6 :Float64;
  gradNorm @7 :Float64;
  tokens @8 :Float64;
}

struct RecordNotice {
  record @0 :DecisionRecord;
  last @1 :Bool;
  validate @2 :Bool;
  lines @3 :UInt64;
}

struct ValidationShare {
  step @0 :UInt64;
  losses @1 :List(LeafLoss);
}

struct MemberAddress {
  member @0 :UInt32;
  where @1 :Data;
}

struct SaveRequest {
  step @0 :UInt64;
  folder @1 :Text;
}

struct SavedBlock {
  layer @0 :UInt32;
  block @1 :UInt32;
  weights @2 :Hash;
  state @3 :Hash;
  parameters @4 :Hash;
  firstMoments @5 :Hash;
  secondMoments @6 :Hash;
}

struct SaveShare {
  step @0 :UInt64;
  blocks @1 :List(SavedBlock);
  failure @2 :Int32;
  message @3 :Text;
  notFiniteIn @4 :Text;
}

struct Farewell {
  code @0 :Int32;
  why @1 :Text;
}

struct NodeHeader {
  step @0 :UInt64;
  layer @1 :UInt32;
  block @2 :UInt32;
  first @3 :UInt32;
  leaves @4 :UInt32;
  source @5 :UInt8;
}

struct SumHeader {
  step @0 :UInt64;
  layer @1 :UInt32;
  block @2 :UInt32;
  hashHigh @3 :UInt64;
  hashLow @4 :UInt64;
}

struct ParametersHeader {
  layer @0 :UInt32;
  block @1 :UInt32;
  decided @2 :RecordNotice;
}
