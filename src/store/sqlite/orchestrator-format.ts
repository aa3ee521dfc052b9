import { instanceStatusSchema } from '../../contract/instance.ts';
import { APPLICATION_ID, type DatabaseFormat, lacksAny } from './database-format.ts';

const specTypes = {
  instanceType: ['text'],
  image: ['text'],
  onStop: ['text'],
  sshKeys: ['array'],
  vcpus: ['integer'],
  memoryGb: ['integer', 'real'],
  storageGb: ['integer', 'real'],
  onlineWithinMs: ['integer', 'real'],
  resumable: ['true', 'false'],
};
const endpointTypes = { publicIp: ['text'], sshPort: ['integer'], sshUsername: ['text'] };

/** SQLite accepts any text in these columns, so damage shows only when the row is read. */
const UNREADABLE = `
  SELECT 'instance ' || id FROM instances
  WHERE status NOT IN (${instanceStatusSchema.options.map((status) => `'${status}'`).join()})
    OR CASE WHEN json_valid(spec) THEN ${lacksAny('spec', specTypes)} ELSE TRUE END
    OR endpoint IS NOT NULL
      AND CASE WHEN json_valid(endpoint) THEN ${lacksAny('endpoint', endpointTypes)} ELSE TRUE END
  LIMIT 1`;

/** The database file of `berth serve`. */
export const orchestratorFormat: DatabaseFormat = {
  command: 'berth serve',
  applicationId: APPLICATION_ID,
  hasBackups: true,
  migrations: 'sqlite',
  unreadable: UNREADABLE,
};
