-- The tables of a ledger. Triggers keep the rules for whoever writes to the file: within the limit, nothing changed or deleted.
CREATE TABLE ledger(one INTEGER PRIMARY KEY CHECK(one=1), version INTEGER NOT NULL, name TEXT NOT NULL, relation TEXT NOT NULL,
  unit TEXT NOT NULL, rule TEXT NOT NULL CHECK(rule IN ('pure','zcdp','approx')), epsilon TEXT NOT NULL, delta TEXT NOT NULL,
  limit_units INTEGER NOT NULL, limit_delta INTEGER NOT NULL);
CREATE TABLE charge(id INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL UNIQUE, units INTEGER NOT NULL CHECK(units>0),
  delta_units INTEGER NOT NULL CHECK(delta_units>=0), plan TEXT NOT NULL, secure INTEGER NOT NULL, reserved_at TEXT NOT NULL,
  committed_at TEXT, state TEXT NOT NULL DEFAULT 'reserved' CHECK(state IN ('reserved','committed')));
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
