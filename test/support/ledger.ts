import Database from 'better-sqlite3';

/** What the orchestrator's database and the simulator's state hold, read from the files beside the process. */
export interface Ledger {
  instances: { id: string; ownerRef: string; offerId: string; status: string; onStop: string }[];
  /** Ids of the instances that hold a unit of capacity. */
  claims: string[];
  /** Ids of what has open work. */
  work: string[];
  /** Owner refs of the machines on the platform. */
  machines: string[];
}

export function readLedger(database: string): Ledger {
  return {
    ...read(database, (db) => ({
      instances: db
        .prepare(
          `SELECT id, owner_ref AS ownerRef, offer_id AS offerId, status,
            json_extract(spec, '$.onStop') AS onStop FROM instances`,
        )
        .all() as Ledger['instances'],
      claims: db.prepare('SELECT instance_id FROM claims').pluck().all() as string[],
      // A lost instance keeps its unit for an hour: nothing is done about it meanwhile.
      work: db.prepare("SELECT resource_id FROM work WHERE kind <> 'release'").pluck().all() as string[],
    })),
    machines: read(
      `${database}.simulator`,
      (db) => db.prepare("SELECT id FROM records WHERE kind = 'machine'").pluck().all() as string[],
    ),
  };
}

function read<T>(file: string, look: (db: Database.Database) => T): T {
  const db = new Database(file, { readonly: true });
  try {
    return db.transaction(() => look(db))();
  } finally {
    db.close();
  }
}

/** What is wrong with a ledger once nothing is under way; empty: each live row has its one machine and its unit. */
export function faultsOf({ instances, claims, work, machines }: Ledger): string[] {
  const faults = work.map((id) => `${id} has open work`);
  const live = instances.filter(({ status }) => status !== 'DESTROYED');
  for (const { id, ownerRef, status, onStop } of live) {
    if (machines.filter((ref) => ref === ownerRef).length !== 1)
      faults.push(`${id} (${status}) has no machine`);
    const isHolding = status !== 'STOPPED' || onStop === 'hold';
    if (claims.includes(id) !== isHolding)
      faults.push(`${id} (${status}) ${isHolding ? 'has no claim' : 'still has a claim'}`);
  }
  for (const ref of machines)
    if (!live.some(({ ownerRef }) => ownerRef === ref)) faults.push(`the machine ${ref} belongs to nobody`);
  for (const id of claims)
    if (!live.some((instance) => instance.id === id)) faults.push(`the claim of ${id} belongs to nobody`);
  return faults;
}
