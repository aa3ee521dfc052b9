import { type DatabaseFormat, lacksAny, MARKETPLACE_ID } from '../../sqlite/database-format.ts';

const statuses = {
  deployments: ['deploying', 'running', 'stopped', 'failed', 'terminated', 'terminated-provider'],
  volumes: ['creating', 'available', 'attached', 'deleting', 'deleted', 'error'],
};
const launchTypes = { state: ['text'] };
const actionTypes = { kind: ['text'], since: ['integer'] };
const proofTypes = { keys: ['array'], attempts: ['integer'] };
const suspensionTypes = { reason: ['text'], running: ['text'] };
const suspicionTypes = { status: ['text'], since: ['integer'], polls: ['integer'] };

const isOneOf = (values: readonly string[]): string => `('${values.join("','")}')`;
const isBroken = (column: string, types: Readonly<Record<string, readonly string[]>>): string =>
  `CASE WHEN json_valid(${column}) THEN ${lacksAny(column, types)} ELSE TRUE END`;
const isBrokenIfThere = (column: string, types: Readonly<Record<string, readonly string[]>>): string =>
  `${column} IS NOT NULL AND ${isBroken(column, types)}`;

/** SQLite accepts any text in these columns, so damage shows only when the row is read. */
const UNREADABLE = `
  SELECT * FROM (
    SELECT 'deployment ' || id FROM deployments
    WHERE status NOT IN ${isOneOf(statuses.deployments)} OR cleanup NOT IN ('none', 'wanted', 'done')
      OR ${isBroken('launch', launchTypes)} OR NOT json_valid(name) OR NOT json_valid(ssh_key_name)
      OR NOT json_valid(extras) OR NOT json_valid(port_forwards)
      OR ${isBrokenIfThere('action', actionTypes)} OR ${isBrokenIfThere('suspicion', suspicionTypes)}
      OR ${isBrokenIfThere('ssh_proof', proofTypes)}
      OR failure_details IS NOT NULL AND NOT json_valid(failure_details)
    UNION ALL
    SELECT 'volume ' || id FROM volumes
    WHERE status NOT IN ${isOneOf(statuses.volumes)} OR cleanup NOT IN ('none', 'wanted', 'done')
      OR NOT json_valid(name) OR ${isBrokenIfThere('action', actionTypes)}
    UNION ALL
    SELECT 'segment ' || id FROM segments WHERE subject_kind NOT IN ('deployment', 'volume')
    UNION ALL
    SELECT 'team ' || id FROM teams
    WHERE NOT json_valid(watch) OR ${isBrokenIfThere('suspension', suspensionTypes)}
    UNION ALL
    SELECT 'user ' || id FROM users WHERE ${isBrokenIfThere('suspension', suspensionTypes)}
    UNION ALL
    SELECT 'SSH key ' || id FROM ssh_keys WHERE NOT json_valid(name)
    UNION ALL
    SELECT 'ledger transaction ' || id FROM ledger_transactions WHERE NOT json_valid(memo)
    UNION ALL
    SELECT 'mail ' || id FROM mails
    WHERE NOT json_valid(subject) OR NOT json_valid(text) OR last_error IS NOT NULL AND NOT json_valid(last_error)
  ) LIMIT 1`;

/** The database file of `berth marketplace`. */
export const marketplaceFormat: DatabaseFormat = {
  command: 'berth marketplace',
  applicationId: MARKETPLACE_ID,
  hasBackups: false,
  migrations: 'marketplace-sqlite',
  unreadable: UNREADABLE,
};
