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
    ready @3 :Bool;
    go @4 :Go;
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
    stopWish @14 :StopWish;
    farewell @15 :Farewell;
    addressTable @16 :List(MemberAddress);
    collect @17 :Collect;
    promise @18 :Promise;
    promiseRefused @19 :PromiseRefused;
    memberGone @20 :MemberGone;
    copyPlan @21 :List(BlockCopy);
    copyWish @22 :Block;
    copiesHeld @23 :Void;
  }
}

struct BulkHeader {
  union {
    nothing @0 :Void;
    node @1 :NodeHeader;
    sum @2 :SumHeader;
    parameters @3 :ParametersHeader;
    state @4 :StateHeader;
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
  totalTokens @4 :UInt64;
  skippedInARow @5 :UInt64;
  plan @6 :UInt32;
  world @7 :UInt32;
}

struct StopWish {
  why @0 :Text;
  wholeRun @1 :Bool;
  drained @2 :Bool;
}

struct Block {
  layer @0 :UInt32;
  block @1 :UInt32;
}

struct Go {
  withoutParameters @0 :List(UInt32);
  validate @1 :Bool;
}

struct HeldFact {
  layer @0 :UInt32;
  block @1 :UInt32;
  version @2 :UInt64;
  nextSum @3 :Bool;
  lost @4 :Bool;
}

struct Collect {
  present @0 :UInt32;
  next @1 :UInt32;
  why @2 :Text;
}

struct Promise {
  next @0 :UInt32;
  ofPlan @1 :Bool;
  seen @2 :UInt64;
  records @3 :List(RecordNotice);
  blocks @4 :List(HeldFact);
}

struct PromiseRefused {
  asked @0 :UInt32;
  promised @1 :UInt32;
}

struct MemberGone {
  who @0 :UInt32;
  life @1 :UInt64;
  proven @2 :Bool;
  how @3 :Text;
}

struct BlockCopy {
  layer @0 :UInt32;
  block @1 :UInt32;
  to @2 :UInt32;
}

struct StateHeader {
  layer @0 :UInt32;
  block @1 :UInt32;
  version @2 :UInt64;
  hashHigh @3 :UInt64;
  hashLow @4 :UInt64;
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
