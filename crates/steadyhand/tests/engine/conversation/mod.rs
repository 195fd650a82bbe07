//! Conversations: real traffic, broken histories, random breakages, real peers.

mod corpus;
