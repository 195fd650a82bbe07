//! The users and groups of this machine, as far as its files name them: who "nobody else" is.

use std::fmt::Display;
use std::fs;
use std::path::PathBuf;

/// Users and groups.
pub(super) struct Accounts {
    /// Who we are.
    pub(super) current: u32,
    users: Vec<User>,
    groups: Vec<Group>,
}

struct User {
    name: String,
    id: u32,
    group: u32,
    home: String,
}

struct Group {
    name: String,
    id: u32,
    members: Vec<String>,
}

const ROOT: u32 = 0;

impl Accounts {
    pub(super) fn of_this_process() -> Accounts {
        let read = |path| fs::read(path).unwrap_or_default();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Accounts::of(
            rustix::process::geteuid().as_raw(),
            &text(read("/etc/passwd")),
            &text(read("/etc/group")),
        )
    }

    fn of(current: u32, passwd: &str, group: &str) -> Accounts {
        let users = passwd.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            Some(User {
                name: (*fields.first()?).to_owned(),
                id: fields.get(2)?.parse().ok()?,
                group: fields.get(3)?.parse().ok()?,
                home: fields.get(5).copied().unwrap_or_default().to_owned(),
            })
        });
        let groups = group.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let members = fields.get(3).copied().unwrap_or_default().split(',');
            let members = members.map(str::trim).filter(|name| !name.is_empty());
            Some(Group {
                name: (*fields.first()?).to_owned(),
                id: fields.get(2)?.parse().ok()?,
                members: members.map(str::to_owned).collect(),
            })
        });
        Accounts {
            current,
            users: users.collect(),
            groups: groups.collect(),
        }
    }

    /// The home folder of a user, if the list says one.
    pub(super) fn home_of(&self, id: u32) -> Option<PathBuf> {
        let user = self.users.iter().find(|user| user.id == id)?;
        (!user.home.is_empty()).then(|| PathBuf::from(&user.home))
    }

    /// Whether what belongs to this user was not made by somebody else.
    pub(super) fn are_ours(&self, user: u32) -> bool {
        user == ROOT || user == self.current
    }

    /// Whether nobody is in this group but its owner, us and root: many systems give each user such a group, and let
    /// it write what the user makes.
    pub(super) fn is_private_group(&self, group: u32, owner: u32) -> bool {
        let is_one_of_us = |user: u32| self.are_ours(user) || user == owner;
        let mut own = self.users.iter().filter(|user| user.group == group);
        if !own.clone().all(|user| is_one_of_us(user.id)) {
            return false;
        }
        let id_of = |name: &str| self.users.iter().find(|user| user.name == name);
        let named = self.groups.iter().filter(|known| known.id == group);
        let members = named.flat_map(|known| &known.members);
        let mut members = members.map(|name| id_of(name));
        if !members.all(|user| user.is_some_and(|user| is_one_of_us(user.id))) {
            return false;
        }
        // A group that nobody is in by these files may be anybody's, unless it has the number of its user.
        own.next().is_some()
            || (is_one_of_us(group) && !self.users.iter().any(|user| user.id == group))
    }

    /// `alice (uid 1000)`
    pub(super) fn user(&self, id: u32) -> String {
        let user = self.users.iter().find(|user| user.id == id);
        shown(user.map(|user| &*user.name), "uid", id)
    }

    /// `staff (gid 50)`
    pub(super) fn group(&self, id: u32) -> String {
        let group = self.groups.iter().find(|group| group.id == id);
        shown(group.map(|group| &*group.name), "gid", id)
    }

    /// As `chown` takes it.
    pub(super) fn user_name(&self, id: u32) -> String {
        let user = self.users.iter().find(|user| user.id == id);
        user.map_or_else(|| id.to_string(), |user| user.name.clone())
    }
}

fn shown(name: Option<&str>, kind: &str, id: impl Display) -> String {
    match name {
        Some(name) => format!("{name} ({kind} {id})"),
        None => format!("{kind} {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n\
        bob:x:1001:100::/home/bob:/bin/sh\ncarol:x:1002:100::/home/carol:/bin/sh\n";
    const GROUP: &str =
        "root:x:0:\nalice:x:1000:\nusers:x:100:\nteam:x:2000:alice,bob\nown:x:2001:alice\n";

    #[test]
    fn s06_only_a_group_without_others_is_private() {
        let private = |current: u32, group: u32, owner: u32| {
            Accounts::of(current, PASSWD, GROUP).is_private_group(group, owner)
        };
        assert!(private(1000, 1000, 1000));
        assert!(private(0, 0, 0));
        // A file of root that only alice's group can write, read by alice.
        assert!(private(1000, 1000, 0));
        assert!(!private(0, 1000, 0), "alice could write what root uses");
        assert!(!private(1001, 100, 1001), "carol is in it too");
        assert!(!private(1000, 2000, 1000), "bob is in it too");
        assert!(!private(1000, 2001, 1000), "nobody's own group");
        assert!(
            private(5000, 5000, 5000),
            "a user that only a directory knows"
        );
        assert!(!private(5000, 100, 5000));
        let with_guest = GROUP.replace("alice:x:1000:", "alice:x:1000:bob");
        assert!(!Accounts::of(1000, PASSWD, &with_guest).is_private_group(1000, 1000));
        let stranger = GROUP.replace("alice:x:1000:", "alice:x:1000:someone-of-ldap");
        assert!(!Accounts::of(1000, PASSWD, &stranger).is_private_group(1000, 1000));
    }
}
