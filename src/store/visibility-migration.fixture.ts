import { expect } from 'vitest';

const instance = (id: string, status: string) =>
  `('${id}', 'a', 'ref-${id}', NULL, 'offer', 'here', '${status}', '{}', NULL, NULL, FALSE, 1, NULL, 1, 1, 1)`;
const volume = (id: string, status: string, deletedAt: string) =>
  `('${id}', 'a', 'ref-${id}', 'data', 1, 'here', NULL, '${status}', 1, 1, ${deletedAt})`;
const work = (id: string, kind: string, step: string, openUntil: string) =>
  `('${id}', '${kind}', '${step}', NULL, 1, 1, NULL, NULL, NULL, NULL, 0, ${openUntil})`;

/** Text in the migration that moves the state of creates from the work to its resource. */
export const MOVES_VISIBILITY = 'instances ADD COLUMN create_open_until';

/** Rows of a database in which only the work, not its resource, knew of creates that may still appear. */
export const WRITE_BEFORE = `
INSERT INTO accounts (id, name, password_hash, created_at) VALUES ('a', 'a', NULL, 0);
INSERT INTO instances VALUES ${[
  instance('i1-creating', 'PROVISIONING'),
  instance('i2-destroying', 'DESTROYING'),
  instance('i3-online', 'ONLINE'),
  instance('i4-destroyed', 'DESTROYED'),
].join()};
INSERT INTO volumes VALUES ${[
  volume('v1-creating', 'CREATING', 'NULL'),
  volume('v2-deleting', 'DELETING', 'NULL'),
  volume('v3-available', 'AVAILABLE', 'NULL'),
  volume('v4-deleted', 'DELETING', '7'),
].join()};
INSERT INTO work VALUES ${[
  work('i1-creating', 'instance', 'create', 'NULL'),
  work('i2-destroying', 'instance', 'destroy', '5000'),
  work('v1-creating', 'volume', 'create', '4000'),
  work('v2-deleting', 'volume', 'destroy', '6000'),
].join()};`;

/** The rows after the migration: of the instances, and of the volumes. */
export function rowsOfBefore(open: number): unknown[][] {
  return [
    [
      ['i1-creating', open],
      ['i2-destroying', 5000],
      ['i3-online', expect.any(Number)],
      ['i4-destroyed', null],
    ],
    [
      ['v1-creating', open],
      ['v2-deleting', 6000],
      ['v3-available', expect.any(Number)],
      ['v4-deleted', null],
    ],
  ];
}
