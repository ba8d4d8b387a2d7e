/**
 * Who asks. `owner` writes the project, and the remote session, the upload and the jobs are theirs; the tokens are theirs,
 * too: `revoked` may write but was deleted, `read` may read. `server` is a server administrator without a part in the
 * project.
 */
export const ACTORS = [
  'nobody',
  'stranger',
  'reader',
  'writer',
  'administrator',
  'owner',
  'server',
  'revoked',
  'read',
] as const;
export type Actor = (typeof ACTORS)[number];

/**
 * What everyone is answered. One line an operation, as the description names it; more where the answer depends on what is
 * asked for, which `#` names. The columns are in the order of ACTORS.
 */
const EXPECTED = `
                                              nob str rea wri adm own ser rev tok
GET /                                         200 200 200 200 200 200 200 200 200
GET /healthz                                  200 200 200 200 200 200 200 200 200
GET /readyz                                   200 200 200 200 200 200 200 200 200
GET /api/openapi.json                         200 200 200 200 200 200 200 200 200
GET /api/docs                                 200 200 200 200 200 200 200 200 200
GET /metrics                                  401 403 403 403 403 403 200 401 403
GET /admin/queues                             401 403 403 403 403 403 200 401 403

POST /login                                   200 200 200 200 200 200 200 200 200
POST /login #wrong                            401 401 401 401 401 401 401 401 401
GET /login/oidc                               404 404 404 404 404 404 404 404 404
GET /login/oidc/callback                      404 404 404 404 404 404 404 404 404
DELETE /logout                                401 204 204 204 204 204 204 401 403
POST /events/{event}                          401 204 204 204 204 204 204 401 403

GET /users                                    401 403 403 403 403 403 200 401 403
POST /users                                   401 403 403 403 403 403 201 401 403
GET /users/-                                  401 200 200 200 200 200 200 401 200
GET /users/{username}                         401 403 403 403 403 403 200 401 403
PUT /users/{username}                         401 403 403 403 403 403 200 401 403
PUT /users/{username} #oneself                401 200 200 200 200 200 200 401 403
PUT /users/{username} #promote                401 403 403 403 403 403 409 401 403
PUT /users/{username} #disable                401 403 403 403 403 403 200 401 403
DELETE /users/{username}                      401 403 403 403 403 403 204 401 403
GET /users/-/tokens                           401 200 200 200 200 200 200 401 200
POST /users/-/tokens                          401 201 201 201 201 201 201 401 403
DELETE /users/-/tokens/{id}                   401 404 404 404 404 204 404 401 403
GET /users/{username}/tokens                  401 403 403 403 403 403 200 401 403
DELETE /users/{username}/tokens/{id}          401 403 403 403 403 403 204 401 403

POST /links                                   401 201 201 201 201 201 201 401 201

GET /webhooks                                 401 200 200 200 200 200 200 401 200
POST /webhooks                                401 201 201 201 201 201 201 401 403
GET /webhooks/{id}                            401 404 404 404 404 200 404 401 200
DELETE /webhooks/{id}                         401 404 404 404 404 204 404 401 403
GET /webhooks/{id}/deliveries                 401 404 404 404 404 200 404 401 200

GET /audit                                    401 403 403 403 403 403 200 401 403
GET /workers                                  401 403 403 403 403 403 200 401 403
GET /settings                                 401 403 403 403 403 403 200 401 403
GET /stats                                    401 403 403 403 403 403 200 401 403
PUT /workers/{id}                             401 403 403 403 403 403 200 401 403
GET /hosts                                    401 200 200 200 200 200 200 401 200
POST /hosts                                   401 403 403 403 403 403 201 401 403
POST /hosts/-/scan                            401 403 403 403 403 403 200 401 403
GET /hosts/{name}                             401 200 200 200 200 200 200 401 200
PUT /hosts/{name}                             401 403 403 403 403 403 200 401 403
DELETE /hosts/{name}                          401 403 403 403 403 403 204 401 403

GET /remotes                                  401 200 200 200 200 200 200 401 200
POST /remotes                                 401 200 200 200 200 200 200 401 403
GET /remotes/{sid}                            401 404 404 404 404 200 404 401 200
DELETE /remotes/{sid}                         401 404 404 404 404 204 404 401 403
POST /remotes/{sid}/answers                    401 404 404 404 404 409 404 401 403
POST /remotes/{sid}/login                      401 404 404 404 404 409 404 401 403
POST /remotes/launch                          401 404 404 404 404 200 404 401 403
POST /remotes/{sid}/batch                     401 404 404 404 404 202 404 401 403
POST /remotes/{sid}/browse/{path}             401 404 404 404 404 200 404 401 403
GET /remotes/{sid}/file/{path}                401 404 404 404 404 200 404 401 403
PUT /remotes/{sid}/file/{path}                401 404 404 404 404 201 404 401 403
DELETE /remotes/{sid}/file/{path}             401 404 404 404 404 204 404 401 403
POST /remotes/{sid}/videos                    401 404 404 404 404 202 404 401 403
POST /remotes/{sid}/videos #cache             401 404 404 404 404 202 404 401 403
POST /remotes/{sid}/videos #foreign-cache     401 404 404 404 404 404 404 401 403
GET /remotes/{sid}/videos/{vsid}/status       401 404 404 404 404 200 404 401 200
GET /remotes/{sid}/videos/{vsid}              401 404 404 404 404 200 404 401 200
GET /remotes/{sid}/videos/{vsid}/poster       401 404 404 404 404 200 404 401 200
GET /remotes/{sid}/videos/{vsid}/sprite       401 404 404 404 404 200 404 401 200
GET /remotes/{sid}/videos/{vsid}/sprite.vtt   401 404 404 404 404 200 404 401 200
GET /remotes/{sid}/videos/{vsid} #cache       401 404 404 404 404 200 404 401 403
GET /remotes/{sid}/videos/{vsid} #foreign     401 404 404 404 404 404 404 401 403

GET /jobs                                     401 200 200 200 200 200 200 401 200
GET /jobs/{id}                                401 404 404 404 404 200 200 401 200
DELETE /jobs/{id}                             401 404 404 404 404 202 202 401 403
DELETE /jobs/{id}/record                      401 404 404 404 404 204 204 401 403
GET /jobs/{id}/command                        401 404 404 404 404 200 404 401 200
GET /jobs/{id}/history                        401 404 404 404 404 200 200 401 200
GET /jobs/{id}/events                         401 404 404 404 404 200 404 401 200
GET /jobs/{id}/output/times                   401 404 404 404 404 200 404 401 200
GET /jobs/{id}/output                         401 404 404 404 404 200 404 401 200
GET /jobs/{id}/result                         401 404 404 404 404 200 404 401 200
POST /jobs/{id}/retry                         401 404 404 404 404 202 404 401 403

GET /projects                                 401 200 200 200 200 200 200 401 200
POST /projects                                401 201 201 201 201 201 201 401 403
GET /projects/{pid}                           401 404 200 200 200 200 404 401 200
PUT /projects/{pid}                           401 404 403 200 200 200 404 401 403
PUT /projects/{pid} #acl                      401 404 403 403 200 403 404 401 403
DELETE /projects/{pid}                        401 404 403 403 204 403 404 401 403
GET /projects/{pid}/cache                     401 404 200 200 200 200 404 401 200
GET /projects/{pid}/cache/{key}               401 404 200 200 200 200 404 401 200
DELETE /projects/{pid}/cache/{key}            401 404 403 204 204 204 404 401 403
GET /projects/{pid}/bookmarks                 401 404 200 200 200 200 404 401 200
POST /projects/{pid}/bookmarks                401 404 403 201 201 201 404 401 403
GET /bookmarks/{bid}                          401 404 200 200 200 200 404 401 200
DELETE /bookmarks/{bid}                       401 404 403 204 204 204 404 401 403

GET /projects/{pid}/models                    401 404 200 200 200 200 404 401 200
POST /projects/{pid}/models                   401 404 403 201 201 201 404 401 403
GET /models/{mid}                             401 404 200 200 200 200 404 401 200
PUT /models/{mid}                             401 404 403 200 200 200 404 401 403
DELETE /models/{mid}                          401 404 403 204 204 204 404 401 403
GET /models/{mid}/parameters/{aid}            401 404 200 200 200 200 404 401 200
PUT /models/{mid}/parameters/{aid}            401 404 403 200 200 200 404 401 403
DELETE /models/{mid}/parameters/{aid}         401 404 403 204 204 204 404 401 403
GET /models/{mid}/files/{aid}                 401 404 200 200 200 200 404 401 200
DELETE /models/{mid}/files/{aid}              401 404 403 204 204 204 404 401 403
DELETE /models/{mid}/arrays/{aid}             401 404 403 204 204 204 404 401 403
GET /models/{mid}/arrays/{aid}                401 404 200 200 200 200 404 401 200
GET /models/{mid}/arrays/{aid}/metadata       401 404 200 200 200 200 404 401 200
GET /models/{mid}/arrays/{aid}/data           401 404 200 200 200 200 404 401 200
DELETE /models/{mid}/tables/{aid}             401 404 403 204 204 204 404 401 403
GET /models/{mid}/tables/{aid}/metadata       401 404 200 200 200 200 404 401 200
GET /models/{mid}/tables/{aid}/rows           401 404 200 200 200 200 404 401 200
GET /models/{mid}/tables/{aid}/rows #sorted   401 404 200 200 200 200 404 401 200
GET /models/{mid}/tables/{aid}/histogram      401 404 200 200 200 200 404 401 200
GET /models/{mid}/tables/{aid}/series         401 404 200 200 200 200 404 401 200
GET /models/{mid}/tables/{aid}/groupby        401 404 200 200 200 200 404 401 200
GET /models/{mid}/tables/{aid}/data           401 404 200 200 200 200 404 401 200

GET /uploads                                  401 200 200 200 200 200 200 401 200
POST /uploads                                 401 404 403 201 201 201 404 401 403
GET /uploads/{uid}                            401 404 404 404 404 200 404 401 200
DELETE /uploads/{uid}                         401 404 404 404 404 204 404 401 403
PUT /uploads/{uid}/files/{fid}/parts/{part}   401 404 404 404 404 200 404 401 403
PUT /uploads/{uid}/files/{fid}/parts/{part} #copy 401 404 404 404 404 202 404 401 403
OPTIONS /tus                                  401 204 204 204 204 204 204 401 204
POST /tus                                     401 404 403 201 201 201 404 401 403
HEAD /tus/{uid}                               401 404 404 404 404 200 404 401 403
PATCH /tus/{uid}                              401 404 404 404 404 204 404 401 403
DELETE /tus/{uid}                             401 404 404 404 404 204 404 401 403
POST /uploads/{uid}/finished                  401 404 404 404 404 202 404 401 403
GET /configuration/parsers                    401 200 200 200 200 200 200 401 200
GET /configuration/version                    401 200 200 200 200 200 200 401 200
GET /configuration/remote-hosts               401 200 200 200 200 200 200 401 200
GET /configuration/markings                   401 200 200 200 200 200 200 401 200
GET /configuration/support-email              401 200 200 200 200 200 200 401 200
GET /projects_list                            401 200 200 200 200 200 200 401 200
`;

export interface Line {
  /** `METHOD /path`, as the description has it, without the prefix. */
  operation: string;
  /** The operation, with what is asked for. */
  name: string;
  method: string;
  path: string;
  statuses: Record<Actor, number>;
}

/** The lines of the table; throws where one cannot be read. */
export function readExpected(): Line[] {
  const [, , ...rows] = EXPECTED.split('\n');
  return rows.filter(Boolean).map(row => {
    const [, method = '', path = '', asked = '', numbers = ''] =
      /^([A-Z]+) (\S+)( #\S+)? +(\d{3}(?: \d{3})*)$/.exec(row) ?? [];
    const statuses = numbers.split(' ').map(Number);
    if (statuses.length !== ACTORS.length) throw new Error(`not a line of the matrix: ${row}`);
    return {
      operation: `${method} ${path}`,
      name: `${method} ${path}${asked}`,
      method,
      path,
      statuses: Object.fromEntries(
        ACTORS.map((actor, i) => [actor, statuses[i]]),
      ) as Line['statuses'],
    };
  });
}
