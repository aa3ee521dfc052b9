import { z } from 'zod';

/**
 * `platform.on_foreign_snapshot` of every driver whose platform has snapshots: how a delete handles an operator's
 * snapshots and backups of the machine. It waits, with an alarm that names them, or removes them too.
 */
export const onForeignSnapshotSchema = z.enum(['wait', 'delete']).default('wait');
export type OnForeignSnapshot = z.infer<typeof onForeignSnapshotSchema>;
