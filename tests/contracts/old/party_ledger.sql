BEGIN TRANSACTION;
CREATE TABLE charge(id INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL UNIQUE, units INTEGER NOT NULL CHECK(units>0),
  delta_units INTEGER NOT NULL CHECK(delta_units>=0), plan TEXT NOT NULL, secure INTEGER NOT NULL, reserved_at TEXT NOT NULL,
  committed_at TEXT, state TEXT NOT NULL DEFAULT 'reserved' CHECK(state IN ('reserved','committed')));
INSERT INTO "charge" VALUES(1,'36557bf899d065fbe7739b84d6f1b633',146601550372,0,'{"charges": [{"delta": "0/1", "epsilon": "36650387593/274877906944", "label": "cells of level 8", "mechanism": "discrete-laplace", "norm": "l1", "one_coordinate": false, "reason": "a row is in at most one cell", "rho": null, "sensitivity": 1, "times": 1}], "delta": "0/1", "relation": "add-remove", "unit": {"id_column": null, "kind": "record", "max_rows_per_person": 1}}',1,'2026-11-16','2026-11-16','committed');
INSERT INTO "charge" VALUES(2,'bec520d723f41b3207164c63c5a880bd',146601550370,0,'{"charges": [{"delta": "0/1", "epsilon": "73300775185/549755813888", "label": "cells of level 12", "mechanism": "discrete-laplace", "norm": "l1", "one_coordinate": false, "reason": "a row is in at most one cell", "rho": null, "sensitivity": 1, "times": 1}], "delta": "0/1", "relation": "add-remove", "unit": {"id_column": null, "kind": "record", "max_rows_per_person": 1}}',1,'2026-11-16','2026-11-16','committed');
INSERT INTO "charge" VALUES(3,'257c5a0cf90c85732fcf540ce9da03de',146601550370,0,'{"charges": [{"delta": "0/1", "epsilon": "73300775185/549755813888", "label": "cells of level 16", "mechanism": "discrete-laplace", "norm": "l1", "one_coordinate": false, "reason": "a row is in at most one cell", "rho": null, "sensitivity": 1, "times": 1}], "delta": "0/1", "relation": "add-remove", "unit": {"id_column": null, "kind": "record", "max_rows_per_person": 1}}',1,'2026-11-16','2026-11-16','committed');
INSERT INTO "charge" VALUES(4,'4dd982268f5124100e80cf4531fcc1bf',439804651110,0,'{"charges": [{"delta": "0/1", "epsilon": "43980465111/274877906944", "label": "rows in cells", "mechanism": "discrete-laplace", "norm": "l1", "one_coordinate": false, "reason": "a row is in at most one cell", "rho": null, "sensitivity": 1, "times": 1}, {"delta": "0/1", "epsilon": "131941395333/549755813888", "label": "deviations in cells", "mechanism": "k-norm", "norm": "l2", "one_coordinate": false, "reason": "a row adds a vector to at most one cell, no longer than that cell''s own bound, which sets the noise there", "rho": null, "sensitivity": 5931641, "times": 1}], "delta": "0/1", "relation": "add-remove", "unit": {"id_column": null, "kind": "record", "max_rows_per_person": 1}}',1,'2026-11-16','2026-11-16','committed');
INSERT INTO "charge" VALUES(5,'a559bcc4f9d5f4e946d61d80326d5f97',21990232555,0,'{"charges": [{"delta": "0/1", "epsilon": "21990232555/1099511627776", "label": "distances", "mechanism": "discrete-laplace", "norm": "l1", "one_coordinate": false, "reason": "a row is in at most one cell", "rho": null, "sensitivity": 1, "times": 1}], "delta": "0/1", "relation": "add-remove", "unit": {"id_column": null, "kind": "record", "max_rows_per_person": 1}}',1,'2026-11-16','2026-11-16','committed');
INSERT INTO "charge" VALUES(6,'ffeb45cde499a0e0fd167da54ae66255',197912092999,0,'{"charges": [{"delta": "0/1", "epsilon": "49478023249/1099511627776", "label": "rows in clusters", "mechanism": "discrete-laplace", "norm": "l1", "one_coordinate": false, "reason": "a row is in at most one cell", "rho": null, "sensitivity": 1, "times": 1}, {"delta": "0/1", "epsilon": "74217034875/549755813888", "label": "residuals in clusters", "mechanism": "k-norm", "norm": "l2", "one_coordinate": false, "reason": "a row adds a vector to at most one cell, no longer than that cell''s own bound, which sets the noise there", "rho": null, "sensitivity": 65536, "times": 1}], "delta": "0/1", "relation": "add-remove", "unit": {"id_column": null, "kind": "record", "max_rows_per_person": 1}}',1,'2026-11-16','2026-11-16','committed');
CREATE TABLE ledger(one INTEGER PRIMARY KEY CHECK(one=1), version INTEGER NOT NULL, name TEXT NOT NULL, relation TEXT NOT NULL,
  unit TEXT NOT NULL, rule TEXT NOT NULL CHECK(rule IN ('pure','zcdp','approx')), epsilon TEXT NOT NULL, delta TEXT NOT NULL,
  limit_units INTEGER NOT NULL, limit_delta INTEGER NOT NULL);
INSERT INTO "ledger" VALUES(1,1,'north','add-remove','{"kind": "record", "max_rows_per_person": 1, "id_column": null}','pure','4','0',4398046511104,0);
CREATE TRIGGER within BEFORE INSERT ON charge WHEN
  (SELECT COALESCE(SUM(units),0) FROM charge) + NEW.units > (SELECT limit_units FROM ledger) OR
  (SELECT COALESCE(SUM(delta_units),0) FROM charge) + NEW.delta_units > (SELECT limit_delta FROM ledger)
  BEGIN SELECT RAISE(ABORT,'budget'); END;
CREATE TRIGGER once BEFORE INSERT ON charge WHEN NEW.state<>'reserved' OR
  EXISTS(SELECT 1 FROM charge WHERE id=NEW.id OR token=NEW.token) BEGIN SELECT RAISE(ABORT,'a charge is written once'); END;
CREATE TRIGGER keep BEFORE DELETE ON charge BEGIN SELECT RAISE(ABORT,'charges are never deleted'); END;
CREATE TRIGGER fixed BEFORE UPDATE ON charge WHEN NOT (OLD.state='reserved' AND NEW.state='committed' AND NEW.id=OLD.id AND
  NEW.token=OLD.token AND NEW.units=OLD.units AND NEW.delta_units=OLD.delta_units AND NEW.plan=OLD.plan AND NEW.secure=OLD.secure
  AND NEW.reserved_at=OLD.reserved_at) BEGIN SELECT RAISE(ABORT,'charges are never changed'); END;
CREATE TRIGGER one_ledger BEFORE INSERT ON ledger WHEN EXISTS(SELECT 1 FROM ledger) BEGIN SELECT RAISE(ABORT,'one ledger'); END;
CREATE TRIGGER keep_ledger BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT,'a ledger is never deleted'); END;
CREATE TRIGGER fixed_ledger BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT,'a ledger is never changed'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('charge',6);
COMMIT;
