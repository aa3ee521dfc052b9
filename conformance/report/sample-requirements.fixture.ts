import type { Requirement } from '../contract/requirements.ts';

type Row = readonly [
  id: string,
  level: Requirement['level'],
  tier: Requirement['tier'],
  place: string,
  text: string,
  means: string,
  cause: string,
];

const ROWS: readonly Row[] = [
  [
    ...(['WIRE-JSON-001', 'MUST', 'compute', 'Conventions, 1'] as const),
    'Request and response bodies are JSON (`Content-Type: application/json`).',
    'Every answer with a body says that it is JSON, and is.',
    'A proxy or a framework’s default error page answers in place of the orchestrator.',
  ],
  [
    ...(['WIRE-CODE-001', 'MUST', 'compute', 'Conventions, 7'] as const),
    'Real HTTP status codes are preserved; a 200 carrying an embedded error is not allowed.',
    'No answer of 2xx has an error in its body.',
    'An error handler that answers with the default status.',
  ],
  [
    ...(['ERR-ENVELOPE-001', 'MUST', 'compute', 'Errors'] as const),
    'Envelope: `{ error: { code, message, details? } }` on every error response.',
    'Every answer of 400 and above has the error envelope.',
    'Errors of the router or of the body parser, which no handler of yours sees.',
  ],
  [
    ...(['AUTH-NONE-001', 'MUST', 'compute', 'Authentication, 4'] as const),
    'Missing or invalid credentials produce 401 with an Error body.',
    'Without a key, and with a wrong one, every endpoint answers 401.',
    'A route that was registered before the middleware that checks the key.',
  ],
  [
    ...(['CFG-FIELDS-001', 'MUST', 'compute', 'Resources and their fields: Configuration'] as const),
    '`vcpus` integer, required.',
    'Every offer has a number of virtual CPUs, and it is a whole number.',
    'A number that is kept as text in the catalogue.',
  ],
  [
    ...(['CFG-STABLE-001', 'MUST', 'compute', 'Resources and their fields: Configuration'] as const),
    '`id`: Stable unique offer identifier.',
    'An offer keeps its id from one read to the next, and no two share one.',
    'Ids made anew at each read.',
  ],
  [
    ...(['AVL-SUBSET-001', 'MUST', 'compute', 'Endpoints: Offers, availability contract 3'] as const),
    '`/availability` returns only offers with `available: true`, reflecting real-time inventory.',
    'Whatever /availability shows can be bought now.',
    'The two endpoints read two caches.',
  ],
  [
    ...(['INS-CREATE-001', 'MUST', 'compute', 'States and transitions, row 1'] as const),
    '201 returned immediately, without waiting for boot.',
    'A create is answered at once with 201 and an instance that is PROVISIONING.',
    'The handler waits for the platform before it answers.',
  ],
  [
    ...(['INS-404-001', 'MUST', 'compute', 'Errors, row 404; Instances, rule 2'] as const),
    'Resource does not exist; for instances, terminal (the client maps it to DESTROYED).',
    'An instance that exists is never answered with 404: the marketplace would take it for destroyed.',
    'A read replica that lags behind, a cache that forgets, or an error of the platform that is mapped to 404. Answer 5xx where you do not know.',
  ],
  [
    ...(['INS-FRESH-001', 'SHOULD', 'compute', 'What the service does'] as const),
    'Status values must be accurate and observable within seconds of a change.',
    'A change of status is seen by the next poll.',
    'The status is copied from the platform on a slow schedule.',
  ],
  [
    ...(['TRACE-PATH-001', 'MUST', 'compute', 'States and transitions'] as const),
    '`DESTROYING` is in progress; `DESTROYED` is terminal.',
    'Whatever polls show of an instance is a lawful path: never backwards, and what is over stays over.',
    'Two writers of the status, or a platform state that is mapped by name alone.',
  ],
  [
    ...(['SSH-LOGIN-001', 'MUST', 'compute', 'States and transitions, row 2'] as const),
    'Reachable public IP (or port-forwarded SSH endpoint) and injected keys work.',
    'When an instance says ONLINE, its user can log in with each of the keys.',
    'ONLINE is set when the platform says that the machine runs, before its SSH server does.',
  ],
  [
    ...(['STOP-RESUME-001', 'MUST', 'compute', 'States and transitions, row STOPPED'] as const),
    'STOPPED: resource still exists, still owned by the deployment, resumable via `/start`.',
    'A stopped instance starts again.',
    'The platform deletes machines that are shut off.',
  ],
  [
    ...(['DEL-TWICE-001', 'MUST', 'compute', 'Endpoints: Instances, rule 3'] as const),
    'DELETE is idempotent: deleting an already-destroyed instance returns 404 or a terminal `DESTROYED` state.',
    'Deleting again does no harm and says so.',
    'The second DELETE meets a record that is half gone.',
  ],
  [
    ...(['NEG-KEYS-001', 'MUST', 'compute', 'Limits'] as const),
    '`ssh_keys` has at least 1 item.',
    'A create without keys is refused with 400, and makes nothing.',
    'The list is checked to be there, not to have an item.',
  ],
  [
    ...(['LAT-POLL-001', 'SHOULD', 'compute', 'Endpoints: Instances, rule 2'] as const),
    '`GET /instances/{id}` is polled continuously and must be fast, cheap and accurate.',
    'The polled read answers in a few tens of milliseconds.',
    'Each read asks the platform.',
  ],
  [
    ...(['TOK-EXPIRES-001', 'MUST', 'token', 'Endpoints: Authentication'] as const),
    '`expires_in` (integer seconds; must be included so the client can refresh proactively).',
    'A token says for how long it works.',
    'The field is optional in most libraries.',
  ],
  [
    ...(['VOL-LOCATION-001', 'MUST', 'storage', 'Endpoints: Volumes'] as const),
    'Each location `id` equals the region token used in `Configuration.regions`.',
    'Volumes are in the same regions as instances, by the same names.',
    'The storage platform has region names of its own.',
  ],
  [
    ...(['VOL-CREATE-001', 'MUST', 'storage', 'Endpoints: Volumes'] as const),
    'POST /volumes: 201 Volume.',
    'A volume is made, and its answer is a volume.',
    'A 200 or 202 where the contract says 201.',
  ],
];

const FEATURES = new Map([
  ['TOK-EXPIRES-001', 'access tokens'],
  ['VOL-LOCATION-001', 'volumes'],
  ['VOL-CREATE-001', 'volumes'],
  ['INS-404-001', 'one that is made'],
]);

/** Some requirements, each with a check of the same id, and two that cannot be tested. */
export const sampleRequirements: readonly Requirement[] = [
  ...ROWS.map(([id, level, tier, place, text, means, cause]): Requirement => {
    const feature = FEATURES.get(id);
    return { id, level, tier, place, text, means, cause, checks: [id], ...(feature && { feature }) };
  }),
  {
    ...({
      id: 'DEL-KEYS-001',
      level: 'MUST',
      tier: 'compute',
      place: 'States and transitions, row DELETE',
    } as const),
    text: 'Temporary provider-side resources (registered keys, startup scripts) released',
    excluded: 'what the platform keeps of keys and scripts cannot be seen from outside',
  },
  {
    ...({
      id: 'STOP-BILL-001',
      level: 'MUST',
      tier: 'compute',
      place: 'States and transitions, row ONLINE',
    } as const),
    text: 'Disk preserved; compute billing pauses',
    excluded: 'the contract has no endpoint that tells what was billed',
  },
];
