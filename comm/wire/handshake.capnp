# What two processes say to each other before they trust each other; see handshake_message.hpp.
# Fields are only ever added, never renumbered: a build of another version must still be told that
# it is one.
@0xd7a0f4c1b58e2936;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::comm::wire");

enum ProcessKind {
  member @0;
  joiner @1;
  client @2;
}

struct Facts {
  runId @0 :Text;
  build @1 :Text;
  configDigest @2 :Text;
  numericsClass @3 :Text;
  slot @4 :Text;
  hasWish @5 :Bool;
  wish @6 :UInt32;
  life @7 :UInt64;
  address @8 :Text;
  host @9 :Text;
  domain @10 :Text;
  kind @11 :ProcessKind;
  computes @12 :Bool;
  threads @13 :UInt64;
  memoryBytes @14 :UInt64;
  speed @15 :UInt64;
}

struct Introduction {
  nonce @0 :Data;
  facts @1 :Facts;
}

struct Challenge {
  introduction @0 :Introduction;
  proof @1 :Data;
}

struct Handshake {
  union {
    hello @0 :Introduction;
    challenge @1 :Challenge;
    answer @2 :Data;
    welcome @3 :Void;
    refusal @4 :Text;
  }
}
