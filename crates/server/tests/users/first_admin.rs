//! The link for the first admin, which ends once there is one.

use turnwright_server::auth::first_link;

use super::*;

impl Server {
    async fn first_link(&self) -> Option<String> {
        first_link(&self.accounts, NOW_MS).await.unwrap().map(|link| format!("code={}", link.expose()))
    }
}

#[tokio::test]
async fn of_the_links_for_the_first_admin_one_is_used_and_no_other_counts_any_more() {
    let server = server().await;
    // One for each start of which nobody took notice.
    let mut links = Vec::new();
    for _ in 0..4 {
        links.push(server.first_link().await.unwrap());
    }
    let enter = async |link: &String| server.form("/login", &[OURS], link).await.status.as_u16();
    let (first, second, third) = tokio::join!(enter(&links[0]), enter(&links[1]), enter(&links[2]));
    let mut told = [first, second, third];
    told.sort_unstable();
    assert_eq!(told, [303, 401, 401]);
    for link in &links {
        assert_eq!(enter(link).await, 401);
    }
    assert_eq!(server.first_link().await, None);
    let known = server.accounts.credentials(&UserId::local()).await.unwrap();
    assert_eq!(known.iter().map(|known| known.kind).collect::<Vec<_>>(), [CredentialKind::Session]);
}

#[tokio::test]
async fn an_admin_who_came_in_another_way_ends_the_link_for_the_first_and_no_other_link() {
    let server = server().await;
    let first = server.first_link().await.unwrap();
    let anna = server.user("anna", Role::Admin).await;
    let local = server.accounts.user(&UserId::local()).await.unwrap().unwrap();
    let own = issue_link(&server.accounts, &local, NOW_MS).await.unwrap();
    // Whoever is added has no way in yet.
    assert!(server.first_link().await.is_some());
    server.token(&anna.id, [Scope::Read], None).await;
    assert_eq!(server.form("/login", &[OURS], &first).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(server.form("/login", &[OURS], &format!("code={}", own.expose())).await.status, StatusCode::SEE_OTHER);
}
